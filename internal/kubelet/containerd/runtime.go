package containerd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	ctrd "github.com/containerd/containerd"
	"github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/namespaces"
	"github.com/containerd/containerd/snapshots/overlay/overlayutils"
	"github.com/containerd/log"
	"github.com/sirupsen/logrus"

	"minik8s/internal/disk"
	"minik8s/internal/kubelet/cgroup"
	"minik8s/internal/kubelet/cri"
)

// Runtime is cri.Runtime on containerd. Make one with New, and Close it at the end.
type Runtime struct {
	cfg    Config
	bin    binaries
	server *server // nil when containerd is another process
	client *ctrd.Client
	net    Network
	// bundles is where containerd keeps what belongs to shims; empty if that is not ours to touch.
	bundles string
	turns   chan struct{}
	socket  string // of the containerd in this process
	// snapshotter makes the root file systems: overlayfs, or native where the kernel or disk lacks it.
	snapshotter string
	spare       *spare
	cgroups     *cgroup.Manager
	images      imageCache
	archives    atomic.Pointer[string] // the directory that ImportDir was last called with
	pulls       pulls
	logger      *logrus.Entry
	events      broadcaster

	// leftovers are of restore, and then of removeLeftovers alone.
	leftovers []leftover
	restored  bool            // what was there before is known
	unsettled func() error    // what the programs that were unpacked still need; may be nil
	run       context.Context // ends with the runtime
	cancel    context.CancelFunc
	wg        sync.WaitGroup

	mu         sync.Mutex
	records    map[string]*record    // by pod uid
	containers map[string]*container // by id
}

var _ cri.Runtime = (*Runtime)(nil)

// New starts containerd, or connects to Config.Socket, and finds again what is there from before.
// Images in DataDir/images are not touched; ImportDir does that. ctx bounds the start only.
func New(ctx context.Context, cfg Config) (_ *Runtime, err error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	r := &Runtime{cfg: cfg, net: cfg.Network, snapshotter: "overlayfs", records: map[string]*record{}, containers: map[string]*container{}}
	r.logger = bridge(cfg.Log)
	r.cgroups = cgroup.New(cfg.CgroupRoot)
	r.turns = make(chan struct{}, 2*runtime.GOMAXPROCS(0))
	r.spare = newSpare(r, cfg.Spare)
	run, cancel := context.WithCancel(r.ns(context.WithoutCancel(ctx)))
	r.run, r.cancel = run, cancel
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if err := mountRunDir(cfg.RunDir); err != nil {
		return nil, err
	}
	for _, dir := range []string{"slots", "sandboxes", "containers"} {
		if err := disk.Private(filepath.Join(cfg.RunDir, dir), 0o700); err != nil {
			return nil, fmt.Errorf("containerd: %w", err)
		}
	}
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	stream := r.subscribe(run)
	if err := r.restore(r.ns(ctx)); err != nil {
		return nil, err
	}
	r.restored = true
	r.wg.Go(func() { r.follow(run, stream) })
	r.wg.Go(func() { r.removeLeftovers(run) })
	if r.server != nil {
		r.wg.Go(func() { r.afterStart(run) })
	}
	r.spare.start(run)
	return r, nil
}

// connect makes the client, and containerd behind it unless one is running.
func (r *Runtime) connect(ctx context.Context) error {
	var err error
	if r.cfg.Socket != "" {
		r.bin = binaries{shim: "io.containerd.runc.v2"}
		r.client, err = ctrd.New(r.cfg.Socket, ctrd.WithDefaultNamespace(Namespace), ctrd.WithTimeout(10*time.Second))
		if err != nil {
			return fmt.Errorf("containerd at %s: %w", r.cfg.Socket, err)
		}
		if _, err := r.client.Version(ctx); err != nil {
			return fmt.Errorf("containerd at %s: %w", r.cfg.Socket, err)
		}
		return nil
	}
	if r.bin, r.unsettled, err = unpackBinaries(filepath.Join(r.cfg.DataDir, "bin")); err != nil {
		return err
	}
	socket, err := r.cfg.socketPath()
	if err != nil {
		return err
	}
	if err := r.endHelpers(ctx, socket); err != nil {
		return err
	}
	r.socket = socket
	root := filepath.Join(r.cfg.DataDir, "containerd")
	state := filepath.Join(r.cfg.RunDir, "containerd")
	if r.server, err = startServer(root, state, socket, r.cfg.Log); err != nil {
		return err
	}
	r.client = r.server.client
	if err := overlayutils.Supported(root); err != nil {
		r.snapshotter = "native"
		r.cfg.Log.Warn("no overlay file system here: images are copied for each container, which is slow", "err", err)
	}
	r.bundles = filepath.Join(state, "io.containerd.runtime.v2.task", Namespace)
	return nil
}

// Close ends what runs in this process. Pods go on, and the next New finds them. If there are none,
// it leaves neither process nor mount behind.
func (r *Runtime) Close() error {
	r.spare.stop()
	if r.client != nil {
		r.spare.drop(context.Background())
	}
	r.cancel()
	r.wg.Wait()
	r.mu.Lock()
	list := make([]*container, 0, len(r.containers))
	for _, c := range r.containers {
		list = append(list, c)
	}
	r.mu.Unlock()
	for _, c := range list {
		c.logs.detach()
	}
	var errs []error
	switch {
	case r.server != nil:
		r.server.stop()
	case r.client != nil:
		errs = append(errs, r.client.Close())
	}
	if r.restored && len(list) == 0 && len(r.records) == 0 {
		errs = append(errs, unmountRunDir(r.cfg.RunDir))
	}
	return errors.Join(errs...)
}

// NetworkChanged is to be called when the network has become ready, or its range is another: sandboxes made ahead
// have addresses of the old one and are made anew. Those of pods keep theirs.
func (r *Runtime) NetworkChanged(ctx context.Context) {
	r.spare.drop(ctx)
	r.spare.kick()
}

// Uninstall removes every pod. Images and the data directory stay. The runtime is of no more use after it but to be
// closed.
func (r *Runtime) Uninstall(ctx context.Context) error {
	pods, err := r.Pods(ctx)
	errs := []error{err}
	for _, p := range pods {
		errs = append(errs, r.removePod(r.ns(ctx), p.UID))
	}
	r.spare.stop()
	r.spare.drop(ctx)
	return errors.Join(errs...)
}

// Pods implements cri.Runtime.
func (r *Runtime) Pods(ctx context.Context) ([]cri.Pod, error) {
	r.mu.Lock()
	uids := map[string]bool{}
	for uid := range r.records {
		uids[uid] = true
	}
	for _, c := range r.containers {
		uids[c.meta.PodUID] = true
	}
	r.mu.Unlock()
	var pods []cri.Pod
	for uid := range uids {
		p, err := r.Pod(ctx, uid)
		if err != nil {
			return nil, err
		}
		if p.Sandbox != nil || len(p.Containers) > 0 {
			pods = append(pods, p)
		}
	}
	return pods, nil
}

// Pod implements cri.Runtime. It is answered from memory, which the event stream keeps true.
func (r *Runtime) Pod(_ context.Context, uid string) (cri.Pod, error) {
	p := cri.Pod{UID: uid}
	if rec := r.record(uid); rec != nil {
		p.Sandbox = r.sandbox(rec)
	}
	for _, c := range r.containersOf(uid) {
		if c.meta.Name != pauseName {
			p.Containers = append(p.Containers, c.report())
		}
	}
	slices.SortFunc(p.Containers, func(a, b cri.Container) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return p, nil
}

func (r *Runtime) record(uid string) *record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.records[uid]
}

// setRecord publishes a record, which is not changed any more.
func (r *Runtime) setRecord(rec *record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records[rec.Config.PodUID] = rec
}

func (r *Runtime) dropRecord(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.records, uid)
}

func (r *Runtime) container(id string) *container {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.containers[id]
}

func (r *Runtime) containersOf(uid string) []*container {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*container
	for _, c := range r.containers {
		if c.meta.PodUID == uid {
			list = append(list, c)
		}
	}
	return list
}

// slowly waits for its turn at something that takes CPU time, and returns what ends the turn. A hundred
// pods at once are sooner done when a few at a time are worked on, and the first ones much sooner.
func (r *Runtime) slowly(ctx context.Context) (done func(), err error) {
	select {
	case r.turns <- struct{}{}:
		return func() { <-r.turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ns gives a context containerd's namespace, and our log for what containerd has to say.
func (r *Runtime) ns(ctx context.Context) context.Context {
	return namespaces.WithNamespace(log.WithLogger(ctx, r.logger), Namespace)
}

func (r *Runtime) runtimeOptions() *options.Options {
	return &options.Options{BinaryName: r.bin.runc, Root: filepath.Join(r.cfg.RunDir, "runc")}
}
