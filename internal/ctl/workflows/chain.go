package workflows

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/manifest"
	"minik8s/internal/ctl/session"
	"minik8s/internal/workflow/asl"
)

// Chain is the state machine of a function and of those that it names as left and right, and so on. A function that does not exist
// is in it, too: a call would end there with an error.
func Chain(ctx context.Context, s *session.Session, namespace, start string) (map[string]any, error) {
	states := map[string]any{}
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if _, seen := states[name]; seen {
			continue
		}
		if len(states) == asl.MaxStates {
			return nil, exit.Failf(exit.Failed, "the chain of function %s has more than the %d functions that a workflow may have", start, asl.MaxStates)
		}
		f, err := client.Get[*minik8s.Function](ctx, s.API, client.Key{Kind: api.Functions, Namespace: namespace, Name: name})
		if apierrors.IsNotFound(err) && name != start {
			states[name] = map[string]any{"Type": asl.Task, "Resource": name, "End": true}
			continue
		}
		if err != nil {
			return nil, err
		}
		state := map[string]any{"Type": asl.Task, "Resource": name}
		if f.Spec.Left == "" && f.Spec.Right == "" {
			state["End"] = true
		}
		for _, way := range []struct{ side, next string }{{"Left", f.Spec.Left}, {"Right", f.Spec.Right}} {
			side, next := way.side, way.next
			switch {
			case state["End"] == true:
				continue
			case next == "" || next == minik8s.FunctionReturn:
				state[side] = asl.Return
				continue
			}
			state[side] = next
			queue = append(queue, next)
		}
		states[name] = state
	}
	return map[string]any{"StartAt": start, "States": states}, nil
}

// OfChain is a workflow of a chain of functions, with the first one's name.
func OfChain(ctx context.Context, s *session.Session, namespace, start string) (*manifest.Document, error) {
	definition, err := Chain(ctx, s, namespace, start)
	if apierrors.IsNotFound(err) {
		return nil, exit.Failf(exit.NotFound, "--chain: there is no function %q in namespace %s (minik8sd ctl get functions)", start, namespace)
	}
	if err != nil {
		return nil, err
	}
	return manifest.Of(ctx, s, "--chain "+start, map[string]any{"apiVersion": api.Workflows.APIVersion(), "kind": api.Workflows.Kind,
		"metadata": map[string]any{"namespace": namespace, "name": start}, "spec": map[string]any{"definition": definition}})
}
