package roles

import (
	"context"

	"minik8s/internal/function"
	"minik8s/internal/workflow"
)

// functionCaller calls functions for workflows: both parts run on the master that leads.
type functionCaller struct{ server *function.Server }

func (f functionCaller) CallFunction(ctx context.Context, c workflow.Call) workflow.Result {
	r := f.server.Invoke(ctx, c.Namespace, c.Function, c.ID, c.TraceParent, c.Body, c.ContentType, c.Alone)
	return workflow.Result{Body: r.Body, ContentType: r.ContentType, Branch: r.Branch, Fault: r.Fault, Status: r.Status, Instance: r.Instance, Cold: r.Cold, Late: r.Late, Stopped: r.Stopped}
}
