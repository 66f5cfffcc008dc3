package roles

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
	"minik8s/internal/gpu"
	"minik8s/internal/gpu/results"
	"minik8s/internal/registry"
)

// gpus is what the GPU part has on this master, of which its two halves share the connections.
func (d *Daemon) gpus() gpu.Config {
	d.gpuOnce.Do(func() {
		d.gpuConfig = gpu.Config{Links: gpu.NewLinks(d.as(registry.Part(gpu.ControllerName)), nil, d.log), Store: results.New(d.path("gpu")),
			Master: d.cfg.NodeName, Leader: d.leaderName, Others: d.otherMaster, Log: d.log}
	})
	return d.gpuConfig
}

// runGPUSweeper clears up, on every master, what results of GPU jobs it has.
func (d *Daemon) runGPUSweeper(ctx context.Context, ready func()) error {
	return gpu.NewSweeper(d.as(registry.Part(gpu.ControllerName)), d.gpus()).Run(ctx, ready)
}

// leaderName is the name of the master that runs the controllers; "" if there is none yet.
func (d *Daemon) leaderName(ctx context.Context) (string, error) {
	lease, err := client.Get[*coordinationv1.Lease](ctx, d.Client(), client.Key{Kind: api.Leases, Namespace: metav1.NamespaceSystem, Name: leaderLease})
	if apierrors.IsNotFound(err) || err == nil && lease.Spec.HolderIdentity == nil {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// otherMaster is another master's API, asked as the administrator.
func (d *Daemon) otherMaster(ctx context.Context, name string) (gpu.Asker, error) {
	node, err := client.Get[*corev1.Node](ctx, d.Client(), client.Key{Kind: api.Nodes, Name: name})
	if err != nil {
		return nil, err
	}
	address := node.Annotations[api.APIAddressAnnotation]
	if address == "" {
		return nil, fmt.Errorf("node %s is no master", name)
	}
	return remote.New(remote.Config{Server: "https://" + address, CA: d.ca.Cert, Identity: d.creds.admin.ForClient, UserAgent: "minik8sd"})
}
