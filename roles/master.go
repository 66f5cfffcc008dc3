package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/aggregation"
	"minik8s/internal/api"
	"minik8s/internal/apiserver"
	"minik8s/internal/apiserver/aggregator"
	"minik8s/internal/client"
	"minik8s/internal/controller/apiservice"
	"minik8s/internal/controller/certificates"
	"minik8s/internal/controller/clustertrust"
	"minik8s/internal/controller/daemonset"
	"minik8s/internal/controller/deployment"
	"minik8s/internal/controller/dnsobject"
	"minik8s/internal/controller/endpointslice"
	"minik8s/internal/controller/expire"
	"minik8s/internal/controller/gc"
	"minik8s/internal/controller/ingress"
	"minik8s/internal/controller/job"
	"minik8s/internal/controller/kubernetesservice"
	"minik8s/internal/controller/leader"
	"minik8s/internal/controller/loadbalancer"
	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/namespace"
	"minik8s/internal/controller/nodelifecycle"
	"minik8s/internal/controller/podautoscaler"
	"minik8s/internal/controller/podautoscaler/decide"
	"minik8s/internal/controller/podautoscaler/metricsapi"
	"minik8s/internal/controller/podgc"
	"minik8s/internal/controller/replicaset"
	"minik8s/internal/controller/serviceaccount"
	"minik8s/internal/controller/servicecidr"
	"minik8s/internal/controller/tainteviction"
	"minik8s/internal/controller/tokencleaner"
	"minik8s/internal/dns"
	"minik8s/internal/events"
	"minik8s/internal/function"
	"minik8s/internal/gpu"
	"minik8s/internal/informer"
	"minik8s/internal/registry"
	"minik8s/internal/registry/strategy"
	"minik8s/internal/scheduler"
	"minik8s/internal/supervise"
	"minik8s/internal/workflow"
)

const (
	socketName     = "api.sock"
	kubeconfigName = "admin.kubeconfig"
	// nodeKubeconfigName is the file on a worker, with the rights of its node.
	nodeKubeconfigName = "kubelet.kubeconfig"
)

// masterParts are a master's parts.
func (d *Daemon) masterParts() []supervise.Part {
	parts := []supervise.Part{
		{Name: "etcd", Policy: supervise.Must, Run: d.runEtcd, After: []string{"credentials"}},
		{Name: "registry", Policy: supervise.Must, Run: d.runRegistry, After: []string{"etcd"}},
		{Name: "door", Policy: supervise.Must, Run: d.runDoor},
		{Name: "apiserver", Policy: supervise.Must, Run: d.runAPI, After: []string{"registry", "door"}},
		{Name: "clustertrust-controller", Policy: supervise.Keep, Run: d.runTrust, After: []string{"apiserver"}},
		{Name: "sightings", Policy: supervise.Keep, Run: d.runSightings, After: []string{"registry"}},
		{Name: gpu.SweeperName, Policy: supervise.Keep, Run: d.runGPUSweeper, After: []string{"registry"}},
		{Name: "function-calls", Policy: supervise.Keep, Run: d.runFunctionCalls, After: []string{"apiserver"}},
		{Name: "registry-port", Policy: supervise.Keep, Run: d.runRegistryPort, After: []string{"apiserver"}},
		{Name: "function-addresses", Policy: supervise.Keep, Run: d.runFunctionDoor, After: []string{"apiserver"}},
		{Name: "leader", Policy: supervise.Keep, Run: d.runLeader, After: []string{"apiserver"}, StopTimeout: 4 * time.Second},
	}
	return append(parts, d.storage.parts()...)
}

func (d *Daemon) runEtcd(ctx context.Context, ready func()) error {
	s, err := d.storage.open(ctx)
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

// runRegistry is ready when the cache is complete and the cluster's own namespaces and priority classes and the Service of the API
// exist.
func (d *Daemon) runRegistry(ctx context.Context, ready func()) error {
	d.reg = registry.New(d.store, strategy.All(strategy.Settings{Tokens: d.tokens, MountTokens: true, PodRange: d.cfg.ClusterCIDR,
		ServiceRange: d.cfg.ServiceCIDR, NodePorts: d.cfg.NodePorts, LBPool: d.cfg.LBPool, ClusterDomain: d.cfg.ClusterDomain, MachinePorts: append(d.machinePorts(), gatewayPorts...)}), d.log)
	loaded, ended := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	go func() { ended <- d.reg.Run(ctx, func() { once.Do(func() { close(loaded) }) }) }()
	select {
	case <-loaded:
	case err := <-ended:
		return err
	}
	objs := append(api.SystemObjects(), kubernetesservice.Service(d.cfg.APIServiceAddress(), int32(d.cfg.APIPort)), dns.Service(d.cfg.DNSAddress()),
		servicecidr.Default(d.cfg.ServiceCIDR), d.newSettings())
	if err := d.reg.Ensure(ctx, objs...); err != nil {
		return err
	}
	if err := errors.Join(d.sameServiceRange(), d.agree(ctx)); err != nil {
		return err
	}
	d.makeFunctions()
	d.clusterViews = informer.NewViews(d.as(registry.Part("views")), d.log)
	d.loaded.Store(d.as(registry.MasterNode(d.cfg.NodeName, d.creds.nodeKey)))
	ready()
	return <-ended
}

func (d *Daemon) runAPI(ctx context.Context, ready func()) error {
	parts := prometheus.NewRegistry()
	parts.MustRegister(append(loop.Metrics(), scheduler.Metrics()...)...)
	parts.MustRegister(d.functions.server)
	d.extensions.Store(aggregator.NewServices(aggregator.ServicesConfig{Registry: d.reg, Cert: d.creds.front}))
	cfg := apiserver.Config{
		Services: d.extensions.Load(), Connectors: d.connectors(), Images: d.functions.registry,
		Metrics:  prometheus.Gatherers{prometheus.DefaultGatherer, parts},
		Kubelets: d.kubelets(), Masters: members{d.storage, d},
		Address:  d.apiAddress(),
		Local:    d.localGroups(),
		Registry: d.reg, Tokens: d.tokens, Cert: d.creds.api, ClientCA: d.creds.trust, Socket: d.path(socketName),
		Listener: d.door,
		Parts:    d.states, Ready: d.ready, Panics: loop.Panics, Version: VersionInfo(), Log: d.log,
	}
	s := apiserver.New(cfg)
	d.apiServer = s
	return s.Run(ctx, func() {
		d.serving.Store(true)
		ready()
	})
}

// runTrust publishes, on every master, whose certificates extension API servers may trust.
func (d *Daemon) runTrust(ctx context.Context, ready func()) error {
	part := d.as(registry.Part("clustertrust-controller"))
	return clustertrust.New(part, clustertrust.Trust{ClientCA: d.ca.Cert, FrontProxyCA: d.frontCA, FrontProxy: aggregator.FrontProxyName,
		User: aggregator.UserHeader, UID: aggregator.UIDHeader, Group: aggregator.GroupHeader, ExtraPrefix: aggregator.ExtraPrefix}, d.log).Run(ctx, ready)
}

// servedVersions are the versions of groups that this cluster serves itself.
func (d *Daemon) servedVersions() ([]schema.GroupVersion, <-chan struct{}) {
	kinds := d.reg.Kinds()
	changed := kinds.Changed() // first, so that none is missed
	var out []schema.GroupVersion
	groups, versions := kinds.GroupVersions()
	for _, g := range groups {
		for _, v := range versions[g] {
			out = append(out, schema.GroupVersion{Group: g, Version: v})
		}
	}
	for _, g := range d.localGroups() {
		out = append(out, schema.GroupVersion{Group: g.Group, Version: g.Version})
	}
	return out, changed
}

// localGroups are the API groups that parts of this daemon answer.
func (d *Daemon) localGroups() []aggregation.Group {
	groups := []aggregation.Group{d.nodeMetrics().Group()}
	if d.queries != nil {
		groups = append(groups, d.queries.Groups()...)
	}
	return groups
}

// recorder runs an event recorder with a part's client until ctx ends; component is the reporting component of its
// Events.
func (d *Daemon) recorder(ctx context.Context, c client.Interface, component string) *events.Recorder {
	r := events.New(c, component, "", d.log)
	go r.Run(ctx)
	return r
}

// runSightings notes what happens, on masters that stand by, too: each may be the next that leads.
func (d *Daemon) runSightings(ctx context.Context, ready func()) error {
	return d.sightings.Run(ctx, d.as(registry.Part("sightings")), d.clusterViews, d.log, ready)
}

// leaderLease is the Lease of the master that leads.
const leaderLease = "minik8s-master"

// runLeader runs the scheduler and the controllers, which may run on only one master at a time, while this one is
// the leader, as the store says. A single master is that as soon as its store can be written. Other masters stand by here. A master
// that stands by is ready, so that the parts that start after this one do not wait.
func (d *Daemon) runLeader(ctx context.Context, ready func()) error {
	e := leader.Elector{Raft: d.store, Client: d.as(registry.Part("leader")), Namespace: metav1.NamespaceSystem, Name: leaderLease,
		Identity: d.cfg.NodeName, Log: d.log, Standby: ready}
	return e.Run(ctx, func(ctx context.Context, t *leader.Term) error {
		fence, err := d.fence(t)
		if err != nil {
			return err
		}
		g := supervise.New(d.log, d.ledParts(fence)...)
		g.AtOnce = true // another master may start them at any moment
		d.led.Store(g)
		defer d.led.Store(nil)
		return g.Run(ctx, ready)
	})
}

// fence is that of a term's writes: the version of the Lease by which this master took it.
func (d *Daemon) fence(t *leader.Term) (*registry.Fence, error) {
	revision, err := strconv.ParseInt(t.Lease.ResourceVersion, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the version of the Lease: %w", err)
	}
	return registry.NewFence(api.Leases, t.Lease.Namespace, t.Lease.Name, revision, t.Fell), nil
}

// runner is a part that lives as long as its Run.
type runner interface {
	Run(ctx context.Context, ready func()) error
}

// ledParts are the scheduler and the controllers. Each has an identity with the part's name, by which package
// registry decides its rights, and writes, Events too, only while the fence stands. They share the views of their
// informers.
func (d *Daemon) ledParts(fence *registry.Fence) []supervise.Part {
	views := d.clusterViews
	var parts []supervise.Part
	add := func(name string, make func(ctx context.Context, c client.Interface) runner) {
		parts = append(parts, supervise.Part{Name: name, Policy: supervise.Keep,
			Run: func(ctx context.Context, ready func()) error {
				return make(ctx, d.as(registry.Part(name)).Under(fence)).Run(ctx, ready)
			}})
	}
	add("scheduler", func(ctx context.Context, c client.Interface) runner {
		return scheduler.New(c, views, d.recorder(ctx, c, scheduler.Name), scheduler.Config{Usage: d.nodesUsage}, d.log)
	})
	add("namespace-controller", func(_ context.Context, c client.Interface) runner {
		return namespace.New(c, views, d.reg.Kinds(), d.log)
	})
	add("serviceaccount-controller", func(_ context.Context, c client.Interface) runner {
		return serviceaccount.New(c, views, d.ca.Cert, d.log)
	})
	add("endpointslice-controller", func(_ context.Context, c client.Interface) runner { return endpointslice.New(c, views, d.log) })
	add("ingress-controller", func(_ context.Context, c client.Interface) runner { return ingress.New(c, views, d.log) })
	add("kubernetes-service", func(_ context.Context, c client.Interface) runner {
		return kubernetesservice.New(c, views, d.cfg.APIServiceAddress(), int32(d.cfg.APIPort), d.log)
	})
	add("servicecidr-controller", func(_ context.Context, c client.Interface) runner { return servicecidr.New(c, views, d.log) })
	add("gc-controller", func(_ context.Context, c client.Interface) runner { return gc.New(c, views, d.reg.Kinds(), d.log) })
	add("podgc-controller", func(_ context.Context, c client.Interface) runner {
		return podgc.New(c, views, podgc.Threshold, d.log)
	})
	add("certificates-controller", func(_ context.Context, c client.Interface) runner {
		return certificates.New(c, views, d.ca, d.foreignNames, d.log)
	})
	add("apiservice-controller", func(_ context.Context, c client.Interface) runner {
		return apiservice.New(c, views, apiservice.Config{Served: d.servedVersions, Ask: d.extensions.Load().Check}, d.log)
	})
	add("token-cleaner", func(_ context.Context, c client.Interface) runner { return tokencleaner.New(c, views, d.log) })
	add("event-expiry", func(_ context.Context, c client.Interface) runner { return expire.New(c, d.log) })
	// Parts that record Events.
	withRecorder := func(name string, make constructor[runner]) {
		add(name, func(ctx context.Context, c client.Interface) runner {
			return make(c, views, d.recorder(ctx, c, name), d.log)
		})
	}
	withRecorder("nodelifecycle-controller", func(c client.Interface, v *informer.Views, r *events.Recorder, log *slog.Logger) runner {
		return nodelifecycle.New(c, v, r, d.cfg.NodeName, d.nodeTimes(), log)
	})
	withRecorder("tainteviction-controller", func(c client.Interface, v *informer.Views, r *events.Recorder, log *slog.Logger) runner {
		return tainteviction.New(c, v, r, d.sightings, log)
	})
	withRecorder("replicaset-controller", func(c client.Interface, v *informer.Views, r *events.Recorder, log *slog.Logger) runner {
		return replicaset.New(c, v, r, d.sightings, log)
	})
	withRecorder("deployment-controller", as(deployment.New))
	withRecorder("daemonset-controller", func(c client.Interface, v *informer.Views, r *events.Recorder, log *slog.Logger) runner {
		return daemonset.New(c, v, r, d.sightings, log)
	})
	withRecorder("job-controller", func(c client.Interface, v *informer.Views, r *events.Recorder, log *slog.Logger) runner {
		return job.New(c, v, r, d.sightings, log)
	})
	withRecorder("dns-controller", as(dnsobject.New))
	withRecorder("loadbalancer-controller", func(c client.Interface, v *informer.Views, r *events.Recorder, log *slog.Logger) runner {
		return loadbalancer.New(c, v, r, d.cfg.LBPool, log)
	})
	withRecorder(function.ControllerName, func(c client.Interface, v *informer.Views, r *events.Recorder, log *slog.Logger) runner {
		return function.NewController(c, v, r, d.functions.images, d.functions.server, d.reg.Kinds(), int32(d.cfg.FunctionPort), log)
	})
	add(workflow.ControllerName, func(_ context.Context, c client.Interface) runner {
		return workflow.NewController(c, views, functionCaller{d.functions.server}, d.log)
	})
	withRecorder(gpu.ControllerName, func(c client.Interface, v *informer.Views, r *events.Recorder, _ *slog.Logger) runner {
		return gpu.NewController(c, v, r, d.gpus())
	})
	const autoscaler = "podautoscaler-controller"
	add(autoscaler, func(ctx context.Context, c client.Interface) runner {
		measured := metricsapi.New(&ownAPI{socket: d.path(socketName), part: autoscaler}, d.reg.Kinds())
		return podautoscaler.New(c, views, d.recorder(ctx, c, podautoscaler.Name), d.reg.Kinds(), measured,
			podautoscaler.Options{Settings: decide.Defaults, Log: d.log})
	})
	return parts
}

// constructor is how most controllers are made.
type constructor[R runner] = func(client.Interface, *informer.Views, *events.Recorder, *slog.Logger) R

// as adapts a controller's constructor to return a runner.
func as[R runner](make constructor[R]) constructor[runner] {
	return func(c client.Interface, v *informer.Views, r *events.Recorder, log *slog.Logger) runner {
		return make(c, v, r, log)
	}
}

// states are the states of all parts, also of those that run while this master leads.
func (d *Daemon) states() []supervise.State {
	out := d.group.States()
	if led := d.led.Load(); led != nil {
		out = append(out, led.States()...)
	}
	return out
}

// answerLimit is how long the store may take to say how far it is, for a master that is ready.
const answerLimit = time.Second

// ready reports whether every part is up, and a majority of the masters is there.
func (d *Daemon) ready() bool {
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	if !d.Ready() {
		return false
	}
	_, err := d.store.Revision(ctx)
	return err == nil
}

// Ready reports whether every part is up.
func (d *Daemon) Ready() bool {
	led := d.led.Load()
	return d.group.Ready() && (led == nil || led.Ready())
}

// sameServiceRange refuses another range of Services than the cluster was made with: every pod knows the API by its first
// address.
func (d *Daemon) sameServiceRange() error {
	svc, err := client.Get[*corev1.Service](context.Background(), d.Client(), client.Key{Kind: api.Services, Namespace: metav1.NamespaceDefault, Name: api.KubernetesService})
	if err != nil {
		return fmt.Errorf("the Service of the API: %w", err)
	}
	if first := d.cfg.ServiceCIDR.Masked().Addr().Next(); svc.Spec.ClusterIP != first.String() {
		return fmt.Errorf("service-cidr: this cluster's API has the address %s, and the first one of %s is %s: give the range that the cluster was made with",
			svc.Spec.ClusterIP, d.cfg.ServiceCIDR, first)
	}
	return nil
}

// nodeTimes are the rungs of the ladder that a silent node goes down.
func (d *Daemon) nodeTimes() nodelifecycle.Times {
	return nodelifecycle.Times{Grace: d.cfg.NodeGracePeriod, Remove: d.cfg.NodeRemovalPeriod,
		Unknown: cmp.Or(d.cfg.NodeUnknownPeriod, 3*d.cfg.NodeGracePeriod)}
}
