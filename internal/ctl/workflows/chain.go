package workflows

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/ctl/session"
	"minik8s/internal/workflow/asl"
)

// Chain is the state machine of a function and of those that it names as left and right, and so on. A function that does not exist
// is in it, too: a call would end there with an error.
func Chain(ctx context.Context, s *session.Session, namespace, start string) ([]byte, error) {
	states := map[string]any{}
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if _, seen := states[name]; seen {
			continue
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
		for side, next := range map[string]string{"Left": f.Spec.Left, "Right": f.Spec.Right} {
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
	return json.Marshal(map[string]any{"StartAt": start, "States": states})
}

// MakeOfChain makes a workflow of a chain of functions, with the first one's name.
func MakeOfChain(ctx context.Context, s *session.Session, namespace, start string) error {
	definition, err := Chain(ctx, s, namespace, start)
	if err != nil {
		return err
	}
	w := &minik8s.Workflow{TypeMeta: metav1.TypeMeta{APIVersion: api.Workflows.APIVersion(), Kind: api.Workflows.Kind}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: start},
		Spec: minik8s.WorkflowSpec{Definition: minik8s.JSON{Raw: definition}}}
	if _, err = s.API.Create(ctx, w, client.WriteOptions{FieldManager: session.Manager}); err == nil {
		s.Say("workflow %q created", start)
	}
	return err
}
