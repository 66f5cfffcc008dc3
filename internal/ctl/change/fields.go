package change

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/session"
)

// Merge merges a change into an object (application/merge-patch+json).
func Merge(ctx context.Context, s *session.Session, obj api.Object, change map[string]any) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = s.API.Patch(ctx, client.KeyOf(obj), client.Patch{Type: types.MergePatchType, Data: data}, client.WriteOptions{FieldManager: session.Manager})
	return err
}

// Scalable are the kinds with a number of pods in spec.replicas.
var Scalable = []*api.Kind{api.Deployments, api.ReplicaSets, api.ReplicationControllers}

// Replicas sets the number of pods of a workload of a Scalable kind.
func Replicas(ctx context.Context, s *session.Session, obj api.Object, replicas int) error {
	if err := Merge(ctx, s, obj, map[string]any{"spec": map[string]any{"replicas": replicas}}); err != nil {
		return err
	}
	s.Say("%s scaled to %d", brief.RefOf(obj), replicas)
	return nil
}

// Cordon closes a node to new pods, or opens it again.
func Cordon(ctx context.Context, s *session.Session, node *corev1.Node, closed bool) error {
	done := "uncordoned"
	if closed {
		done = "cordoned"
	}
	if node.Spec.Unschedulable == closed {
		s.Say("%s already %s", brief.RefOf(node), done)
		return nil
	}
	if err := Merge(ctx, s, node, map[string]any{"spec": map[string]any{"unschedulable": closed}}); err != nil {
		return err
	}
	s.Say("%s %s", brief.RefOf(node), done)
	return nil
}
