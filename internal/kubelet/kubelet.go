package kubelet

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/events"
	"minik8s/internal/informer"
	"minik8s/internal/kubelet/cgroup"
	"minik8s/internal/kubelet/checkpoint"
	"minik8s/internal/kubelet/connect"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/hostports"
	"minik8s/internal/kubelet/images"
	"minik8s/internal/kubelet/node"
	"minik8s/internal/kubelet/objects"
	"minik8s/internal/kubelet/podconfig"
	"minik8s/internal/kubelet/services"
	"minik8s/internal/kubelet/shutdown"
	"minik8s/internal/kubelet/token"
	"minik8s/internal/kubelet/volume"
	"minik8s/internal/kubelet/work"
)

// Config configures one node's kubelet. NodeName and DataDir must be set.
type Config struct {
	NodeName string
	// NodeIP is the node's own address, the hostIP of its pods.
	NodeIP netip.Addr
	// Port is that of the kubelet's server (package server); 0: it has none.
	Port int32
	// Checkpoints keeps the pods in files, for a start without the API (not for hollow nodes).
	Checkpoints bool
	// DataDir holds pods/ (volumes, termination messages) and pods-logs/.
	DataDir string
	// PodPidsLimit is how many processes and threads a pod may have; 0: no limit.
	PodPidsLimit int64
	// CgroupRoot is the cgroup under which all pods live, "/minik8s". Empty: no cgroup is made
	// for pods (hollow nodes, tests).
	CgroupRoot string
	// PodCIDR is the range of the pods' addresses, used where the Node object names none. The
	// runtime uses it from the start.
	PodCIDR netip.Prefix
	// MaxPods is how many pods the node may have; 0: 110.
	MaxPods int
	// ClusterDNS are the servers of dnsPolicy ClusterFirst; none: the address of the Service kube-system/kube-dns, and pods
	// use the node's own if there is none.
	ClusterDNS []string
	// ClusterDomain is the cluster's DNS domain; empty: "cluster.local".
	ClusterDomain string
	// RandomHostPorts gives every containerPort without a hostPort a free one, for all pods.
	RandomHostPorts bool
	// Version is what nodeInfo.kubeletVersion says: "v1.37.0-minik8s".
	Version string
	// RuntimeVersion is what nodeInfo.containerRuntimeVersion says after "containerd://".
	RuntimeVersion string
	Labels         map[string]string
	// APIAddress is where this machine's API is reached, HOST:PORT; empty: it is no master.
	APIAddress string
	Taints     []corev1.Taint
	// Capacity overrides the machine's capacity, for hollow nodes: "cpu", "memory" and so on.
	Capacity corev1.ResourceList
	// Network is what the Node needs of the pods' network; nil: there is none (hollow nodes).
	Network node.Network
	// Policies, which may be nil, is told of the pods' addresses.
	Policies Policies
	// Work is whose turn it is to use the processors; it is the runtime's, too. Nil: one of its own.
	Work *work.Limit
	// RegistryAuthFile is a docker config.json with the logins by which this machine pulls images, beside those of the pods' own
	// imagePullSecrets; empty: there are none.
	RegistryAuthFile string
	// Unavailable, which may be nil, is called when the API could not take a heartbeat.
	Unavailable func()
	// Heard, which may be nil, is called when the API has taken one.
	Heard func()
	// Networks are those of the machine's links, as the Node's annotation has them.
	Networks string
	// Shutdown is how pods end when the machine shuts down. The zero value: they are not ended.
	Shutdown shutdown.Config
	// HeartbeatInterval is the time between renewals of the node's Lease; 0: 10 s.
	HeartbeatInterval time.Duration
	// Now is the clock; nil: clock.Now.
	Now func() time.Time
	// Views, which may be nil, are shared with other parts of the process that read with the same rights.
	Views *informer.Views
	// Log may be nil.
	Log *slog.Logger
}

// Policies carries NetworkPolicies out.
type Policies interface {
	// Admit is called before a process of a pod starts, and returns when what policies say of a pod with these addresses is
	// in force, or when it is no use to wait for that; then it returns false.
	Admit(ctx context.Context, pod *corev1.Pod, addresses []netip.Addr) bool
	// Release is called when a pod has its addresses no more.
	Release(uid types.UID)
}

// noPolicies lets every pod start.
type noPolicies struct{}

func (noPolicies) Admit(context.Context, *corev1.Pod, []netip.Addr) bool { return true }
func (noPolicies) Release(types.UID)                                     {}

// Kubelet runs the pods of one node.
type Kubelet struct {
	// Manager answers clients: which pods there are, logs, exec, attach and port-forward.
	*connect.Manager

	cfg     Config
	client  client.Interface
	runtime cri.Runtime
	rec     *events.Recorder
	log     *slog.Logger
	now     func() time.Time
	volumes *volume.Manager
	objects *objects.Manager
	tokens  *token.Manager
	// services is made anew by each Run.
	services *services.Follower
	cgroups  *cgroup.Manager // nil: none
	ports    *hostports.Manager
	images   *images.Manager
	// checkpoints is nil where the API is in this process.
	checkpoints *checkpoint.Store
	config      *podconfig.Builder
	node        *node.Manager
	admission   admission
	startLimit  startLimit
	// shuttingDown is set while the machine shuts down: no new pod is admitted.
	shuttingDown atomic.Bool

	mu      sync.Mutex
	workers map[types.UID]*worker
	// ended are pods whose workers are done but which the watch has not reported as deleted yet.
	ended map[types.UID]bool
	// found are the runtime's pods at the start of Run, until their workers take them.
	found map[types.UID]cri.Pod
	wg    sync.WaitGroup
}

// New makes a kubelet; it does nothing before Run.
func New(cfg Config, c client.Interface, rt cri.Runtime) *Kubelet {
	if cfg.MaxPods == 0 {
		cfg.MaxPods = 110
	}
	if cfg.ClusterDomain == "" {
		cfg.ClusterDomain = "cluster.local"
	}
	if cfg.HeartbeatInterval == 0 {
		cfg.HeartbeatInterval = 10 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = clock.Now
	}
	if cfg.Policies == nil {
		cfg.Policies = noPolicies{}
	}
	if cfg.Work == nil {
		cfg.Work = work.New(work.Turns())
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	k := &Kubelet{cfg: cfg, client: c, runtime: rt, log: cfg.Log, now: cfg.Now,
		rec:        events.New(c, "kubelet", cfg.NodeName, cfg.Log),
		startLimit: newStartLimit(),
		workers:    map[types.UID]*worker{}, ended: map[types.UID]bool{}}
	k.Manager = connect.New(connect.Config{Runtime: rt, LogPath: k.logPath, Now: k.now})
	k.ports = hostports.New(c, cfg.RandomHostPorts)
	k.tokens = token.New(c, k.now, k.log)
	k.objects = objects.New(c, cfg.Log, k.spawn, func(uid types.UID) { k.send(uid, func(b *inbox) { b.objects = true }) })
	if cfg.CgroupRoot != "" {
		k.cgroups = cgroup.New(cfg.CgroupRoot)
	}
	if cfg.Checkpoints {
		k.checkpoints = checkpoint.New(filepath.Join(cfg.DataDir, "checkpoints"), cfg.Log)
	}
	k.images = images.New(rt, c, cfg.RegistryAuthFile, k.now, k.log)
	k.node = node.New(k.nodeConfig(), c, rt, k.rec)
	k.admission.allocatable = k.node.Allocatable
	k.config = &podconfig.Builder{NodeName: cfg.NodeName, NodeIP: cfg.NodeIP, ClusterDNS: cfg.ClusterDNS, ClusterDomain: cfg.ClusterDomain,
		Objects: k.objects, Images: rt, Events: k.rec, Allocatable: k.node.Allocatable, Memory: k.node.Memory}
	k.volumes = volume.New(filepath.Join(cfg.DataDir, "pods"), sources{k.config, k.tokens})
	k.config.Volumes = k.volumes
	return k
}

// keptServices is where the variables of Services that a pod's containers had last are kept; nil where the API is in this
// process.
func (k *Kubelet) keptServices() func(uid string) string {
	if k.checkpoints == nil {
		return nil
	}
	return k.volumes.PodDir
}

// nodeConfig is the part of the configuration for package node.
func (k *Kubelet) nodeConfig() node.Config {
	c := &k.cfg
	return node.Config{Name: c.NodeName, IP: c.NodeIP, Port: c.Port, DataDir: c.DataDir, PodCIDR: c.PodCIDR, MaxPods: c.MaxPods,
		Version: c.Version, RuntimeVersion: c.RuntimeVersion, Labels: c.Labels, APIAddress: c.APIAddress, Taints: c.Taints, Capacity: c.Capacity,
		Network: c.Network, Unavailable: c.Unavailable, Heard: c.Heard, Networks: c.Networks, HeartbeatInterval: c.HeartbeatInterval, Now: c.Now, Log: c.Log}
}

// Run runs the node's pods until ctx ends. It calls ready once the Node is registered and Ready and the pods that
// already run are found. It stops no pod when it ends, and may be called again. The error is one for which a retry
// does not help.
func (k *Kubelet) Run(ctx context.Context, ready func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer k.wg.Wait()
	defer cancel()
	k.reset()
	// The stream is opened before the state is read, so that no change is missed.
	changes := k.runtime.Events(ctx)
	registered := make(chan error, 1)
	k.spawn(func() { k.rec.Run(ctx) })
	k.spawn(func() { k.services.Run(ctx) })
	k.spawn(func() { registered <- k.node.Register(ctx) })
	pods, err := k.runtime.Pods(ctx)
	if err != nil {
		return fmt.Errorf("finding the pods of the runtime: %w", err)
	}
	for _, p := range pods {
		k.found[types.UID(p.UID)] = p
	}
	k.spawn(func() { k.forward(ctx, changes) })
	if k.checkpoints != nil {
		k.spawn(func() { k.checkpoints.Run(ctx) })
	}
	known, synced := make(chan struct{}), make(chan struct{})
	k.spawn(func() { k.watchPods(ctx, func() { close(known) }, func() { close(synced) }) })
	k.spawn(func() { // also while no API can be reached
		select {
		case <-known:
			shutdown.New(k.cfg.Shutdown, k).Run(ctx)
		case <-ctx.Done():
		}
	})
	select {
	case err = <-registered:
	case <-ctx.Done():
		return nil
	}
	if err != nil {
		return fmt.Errorf("registering node %s: %w", k.cfg.NodeName, err)
	}
	k.spawn(func() { k.node.Run(ctx) })
	select {
	case <-synced:
	case <-ctx.Done():
		return nil
	}
	ready()
	<-ctx.Done()
	return nil
}

// reset clears the state of an earlier Run.
func (k *Kubelet) reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.workers, k.ended = map[types.UID]*worker{}, map[types.UID]bool{}
	k.found = map[types.UID]cri.Pod{}
	k.Manager.Reset()
	k.admission.reset()
	k.shuttingDown.Store(false)
	k.services = services.New(k.client, k.cfg.Views, k.keptServices(), k.log)
	k.config.Services = k.services
	k.ports.Reset()
}

func (k *Kubelet) spawn(f func()) {
	k.wg.Add(1)
	go func() {
		defer k.wg.Done()
		f()
	}()
}

// forward wakes the worker of each pod for which the runtime reports a change.
func (k *Kubelet) forward(ctx context.Context, changes <-chan cri.Event) {
	for {
		select {
		case ev, ok := <-changes:
			if !ok {
				return
			}
			k.runtimeChanged(types.UID(ev.PodUID))
		case <-ctx.Done():
			return
		}
	}
}

// ImagesChanged has to be called when images were imported or pulled by hand: pods that wait for one retry at once,
// and the Node's list of images is updated.
func (k *Kubelet) ImagesChanged() {
	k.node.ImagesChanged()
	k.images.Changed()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.workers {
		w.send(func(b *inbox) { b.images = true })
	}
}

// send leaves a message for the worker of a pod, if it has one.
func (k *Kubelet) send(uid types.UID, message func(*inbox)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.workers[uid]; w != nil {
		w.send(message)
	}
}

// runtimeChanged makes a pod's worker, or every worker if uid is empty, read the runtime's state again.
func (k *Kubelet) runtimeChanged(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if uid != "" {
		if w := k.workers[uid]; w != nil {
			w.send(func(b *inbox) { b.stale = true })
		}
		return
	}
	for _, w := range k.workers {
		w.send(func(b *inbox) { b.stale = true })
	}
}

// startWorker starts a worker for a pod that has none. It is called with mu held.
func (k *Kubelet) startWorker(ctx context.Context, uid types.UID) *worker {
	w := newWorker(k, uid, k.found[uid])
	delete(k.found, uid)
	k.workers[uid] = w
	k.spawn(func() { w.run(ctx) })
	return w
}

// retireWorker ends a worker, unless a message has come for it meanwhile.
func (k *Kubelet) retireWorker(w *worker) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w.hasMessages() {
		return false
	}
	delete(k.workers, w.uid)
	w.tellEnded()
	if w.pod != nil && !w.watchSawDeletion {
		k.ended[w.uid] = true
	}
	k.admission.release(w.uid)
	k.objects.Drop(w.uid)
	k.tokens.Drop(w.uid)
	w.snapshot.Drop()
	return true
}
