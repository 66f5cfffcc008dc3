package roles

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"

	"minik8s/config"
	"minik8s/internal/apiserver"
	"minik8s/internal/certs"
	"minik8s/internal/controller/daemonset"
	"minik8s/internal/controller/deployment"
	"minik8s/internal/controller/expire"
	"minik8s/internal/controller/gc"
	"minik8s/internal/controller/job"
	"minik8s/internal/controller/namespace"
	"minik8s/internal/controller/nodelifecycle"
	"minik8s/internal/controller/podgc"
	"minik8s/internal/controller/replicaset"
	"minik8s/internal/controller/serviceaccount"
	"minik8s/internal/events"
	"minik8s/internal/registry"
	"minik8s/internal/scheduler"
	"minik8s/internal/store/etcd"
	"minik8s/internal/supervise"
)

const (
	socketName     = "api.sock"
	kubeconfigName = "admin.kubeconfig"
)

// masterParts is what a master is made of, in the order of starting.
func (d *Daemon) masterParts() ([]supervise.Part, error) {
	if err := d.certificates(); err != nil {
		return nil, err
	}
	parts := []supervise.Part{
		{Name: "etcd", Policy: supervise.Must, Run: d.runEtcd},
		{Name: "registry", Policy: supervise.Must, Run: d.runRegistry},
		{Name: "apiserver", Policy: supervise.Must, Run: d.runAPI},
		{Name: "scheduler", Policy: supervise.Keep, Run: d.runScheduler},
	}
	for _, c := range d.controllers() {
		c.Policy, c.Beside = supervise.Keep, true
		parts = append(parts, c)
	}
	return parts, nil
}

// certificates makes or reads the CA, the server's certificate and the admin's kubeconfig.
func (d *Daemon) certificates() (err error) {
	dir := d.path("pki")
	if d.ca, err = certs.OpenAuthority(dir, "minik8s-ca"); err != nil {
		return err
	}
	domain := d.cfg.ClusterDomain
	hosts := []string{"localhost", "127.0.0.1", "::1", d.cfg.NodeName, d.cfg.NodeIP.String(),
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + domain}
	if d.server, err = d.ca.Server(dir, "apiserver", hosts); err != nil {
		return err
	}
	admin, err := d.ca.Client(dir, "admin", "kubernetes-admin", registry.GroupMasters)
	if err != nil {
		return err
	}
	address := d.cfg.APIAddress
	if address == "" {
		address = "127.0.0.1"
	}
	server := "https://" + net.JoinHostPort(address, strconv.Itoa(d.cfg.APIPort))
	kc, err := certs.Kubeconfig("minik8s", server, d.ca.Cert, "admin", admin)
	if err != nil {
		return err
	}
	return certs.WriteFile(d.path(kubeconfigName), kc, 0o600)
}

func (d *Daemon) runEtcd(ctx context.Context, ready func()) error {
	s, err := etcd.Open(ctx, etcd.Config{Dir: d.path("etcd"), Name: d.cfg.NodeName, Quota: d.cfg.EtcdQuota, Log: d.log})
	if err != nil {
		return err
	}
	d.store = s
	ready()
	select {
	case err = <-s.Err():
	case <-ctx.Done():
	}
	return firstErr(err, s.Close())
}

func firstErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// runRegistry is ready when the cache is whole and the cluster's own namespaces are there.
func (d *Daemon) runRegistry(ctx context.Context, ready func()) error {
	d.reg = registry.New(d.store, d.log)
	loaded, ended := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	go func() { ended <- d.reg.Run(ctx, func() { once.Do(func() { close(loaded) }) }) }()
	select {
	case <-loaded:
	case err := <-ended:
		return err
	}
	for _, ns := range systemNamespaces {
		if err := d.reg.EnsureNamespace(ctx, ns); err != nil {
			return fmt.Errorf("namespace %s: %w", ns, err)
		}
	}
	ready()
	return <-ended
}

func (d *Daemon) runAPI(ctx context.Context, ready func()) error {
	cert, err := d.server.TLS()
	if err != nil {
		return err
	}
	cfg := apiserver.Config{
		Registry: d.reg, Cert: cert, ClientCA: d.ca.Pool(), Socket: d.path(socketName),
		Listener: d.listener,
		Parts:    d.group.States, Ready: d.group.Ready, Version: VersionInfo(), Log: d.log,
	}
	if d.cfg.Has(config.Worker) {
		cfg.Nodes = nodeAgents{d}
	}
	return apiserver.New(cfg).Run(ctx, ready)
}

// recorder runs an event recorder for a part as long as the part runs; component is the name that its
// events carry.
func (d *Daemon) recorder(ctx context.Context, part, component string) *events.Recorder {
	r := events.New(d.as(registry.Part(part)), component, "", d.log)
	go r.Run(ctx)
	return r
}

func (d *Daemon) runScheduler(ctx context.Context, ready func()) error {
	const name = "scheduler"
	return scheduler.New(d.as(registry.Part(name)), d.recorder(ctx, name, scheduler.Name), d.log).Run(ctx, ready)
}

// controllers are the loops that keep the cluster as it should be. With one master each runs as long as
// the daemon does. With several, each Run here is wrapped in a leader.Elector (package
// controller/leader), with the node's name as its identity, so that it runs on one master at a time;
// until masters can be several it would be a write every ten seconds for nothing.
func (d *Daemon) controllers() []supervise.Part {
	return []supervise.Part{
		{Name: "namespace-controller", Run: func(ctx context.Context, ready func()) error {
			return namespace.New(d.as(registry.Part("namespace-controller")), d.log).Run(ctx, ready)
		}},
		{Name: "serviceaccount-controller", Run: func(ctx context.Context, ready func()) error {
			return serviceaccount.New(d.as(registry.Part("serviceaccount-controller")), d.ca.Cert, d.log).Run(ctx, ready)
		}},
		{Name: "nodelifecycle-controller", Run: func(ctx context.Context, ready func()) error {
			const name = "nodelifecycle-controller"
			return nodelifecycle.New(d.as(registry.Part(name)), d.recorder(ctx, name, name), d.log).Run(ctx, ready)
		}},
		{Name: "replicaset-controller", Run: func(ctx context.Context, ready func()) error {
			const name = "replicaset-controller"
			return replicaset.New(d.as(registry.Part(name)), d.recorder(ctx, name, name), d.log).Run(ctx, ready)
		}},
		{Name: "deployment-controller", Run: func(ctx context.Context, ready func()) error {
			const name = "deployment-controller"
			return deployment.New(d.as(registry.Part(name)), d.recorder(ctx, name, name), d.log).Run(ctx, ready)
		}},
		{Name: "daemonset-controller", Run: func(ctx context.Context, ready func()) error {
			const name = "daemonset-controller"
			return daemonset.New(d.as(registry.Part(name)), d.recorder(ctx, name, name), d.log).Run(ctx, ready)
		}},
		{Name: "job-controller", Run: func(ctx context.Context, ready func()) error {
			const name = "job-controller"
			return job.New(d.as(registry.Part(name)), d.recorder(ctx, name, name), d.log).Run(ctx, ready)
		}},
		{Name: "gc-controller", Run: func(ctx context.Context, ready func()) error {
			return gc.New(d.as(registry.Part("gc-controller")), d.log).Run(ctx, ready)
		}},
		{Name: "podgc-controller", Run: func(ctx context.Context, ready func()) error {
			return podgc.New(d.as(registry.Part("podgc-controller")), podgc.Threshold, d.log).Run(ctx, ready)
		}},
		{Name: "event-expiry", Run: func(ctx context.Context, ready func()) error {
			return expire.New(d.as(registry.Part("event-expiry")), d.log).Run(ctx, ready)
		}},
	}
}
