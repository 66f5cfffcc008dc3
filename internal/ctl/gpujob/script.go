package gpujob

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/ctl/session"
	"minik8s/internal/gpu/plan"
)

// Script is how a job is, or will be, submitted, and what it runs. The job need not exist yet.
func Script(ctx context.Context, s *session.Session, j *minik8s.GpuJob) (string, error) {
	list, err := s.API.List(ctx, api.SlurmClusters, client.ListOptions{Namespace: j.Namespace})
	if err != nil {
		return "", err
	}
	var names []string
	for _, c := range list.Items {
		names = append(names, c.GetName())
	}
	spec := &minik8s.SlurmClusterSpec{}
	if name, err := plan.Choose(j, names); err == nil {
		c, err := client.Get[*minik8s.SlurmCluster](ctx, s.API, client.Key{Kind: api.SlurmClusters, Namespace: j.Namespace, Name: name})
		if err != nil && !apierrors.IsNotFound(err) {
			return "", err
		}
		if err == nil {
			spec = &c.Spec
		}
	}
	return plan.Text(j, spec)
}
