package containerd

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	ctrd "github.com/containerd/containerd"

	"minik8s/internal/kubelet/cgroup"
	"minik8s/internal/kubelet/containerd/container"
	"minik8s/internal/kubelet/containerd/embed"
	"minik8s/internal/kubelet/containerd/image"
	"minik8s/internal/kubelet/containerd/sandbox"
	"minik8s/internal/kubelet/cri"
)

// Runtime is cri.Runtime on containerd. Make one with New, and Close it at the end.
type Runtime struct {
	cri.Images // images

	cfg        Config
	containerd *embed.Containerd
	client     *ctrd.Client // containerd's
	net        Network
	images     *image.Store
	sandboxes  *sandbox.Pool
	records    *records // of the pods' sandboxes
	containers *container.Set
	cgroups    *cgroup.Manager
	usage      *cgroup.Seen
	traffic    *traffic
	events     broadcaster
	given      atomic.Pointer[netip.Prefix] // see RangeGiven

	garbage  garbage
	restored bool            // restore is done
	run      context.Context // ends with the runtime
	cancel   context.CancelFunc
	wg       sync.WaitGroup
}

var _ cri.Runtime = (*Runtime)(nil)

// New starts containerd, or connects to Config.Socket, and restores the pods of an earlier run. When it returns, it
// has passed their sandboxes to the network, whose Setup can be called. It does not import images from
// DataDir/images; ImportDir does. ctx bounds the start only.
func New(ctx context.Context, cfg Config) (_ *Runtime, err error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	r := &Runtime{cfg: cfg, net: cfg.Network, cgroups: cgroup.New(cfg.CgroupRoot), usage: cgroup.NewSeen(), traffic: newTraffic(),
		records: newRecords(filepath.Join(cfg.RunDir, "sandboxes")), garbage: garbage{log: cfg.Log}}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if err := makeRunDir(cfg.RunDir); err != nil {
		return nil, err
	}
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	stream := r.containers.Subscribe(r.run)
	if err := r.restore(r.ns(ctx)); err != nil {
		return nil, err
	}
	r.restored = true
	r.wg.Go(func() { r.containers.Follow(r.run, stream) })
	r.wg.Go(func() { r.garbage.collect(r.run) })
	r.wg.Go(func() { r.afterStart(r.run) })
	r.sandboxes.Start(r.run)
	return r, nil
}

// connect starts containerd or connects to an external one, and makes the client and the parts that use it.
func (r *Runtime) connect(ctx context.Context) (err error) {
	cfg := embed.Config{DataDir: r.cfg.DataDir, RunDir: r.cfg.RunDir, Cgroups: r.cgroups, Log: r.cfg.Log}
	if r.cfg.Socket != "" {
		r.containerd, err = embed.Connect(ctx, r.cfg.Socket, cfg)
	} else {
		r.containerd, err = embed.Start(ctx, cfg)
	}
	if err != nil {
		return err
	}
	r.client = r.containerd.Client
	r.run, r.cancel = context.WithCancel(r.ns(context.WithoutCancel(ctx)))
	r.images = image.New(r.run, image.Config{Containerd: r.containerd, InsecureRegistries: r.cfg.InsecureRegistries, Registries: r.cfg.Registries, Work: r.cfg.Work, Log: r.cfg.Log})
	r.Images = r.images
	r.sandboxes = sandbox.New(sandbox.Config{Dir: filepath.Join(r.cfg.RunDir, "slots"), Network: r.net, Work: r.cfg.Work, Warm: r.cfg.Warm, Log: r.cfg.Log})
	r.containers = container.New(r.run, container.Config{Dir: filepath.Join(r.cfg.RunDir, "containers"), Containerd: r.containerd,
		Work: r.cfg.Work, LogMaxSize: r.cfg.LogMaxSize, LogMaxFiles: r.cfg.LogMaxFiles, Log: r.cfg.Log,
		Changed: r.containerChanged, Damaged: r.images.RepairLater, Missed: func() { r.events.send(cri.Event{}) }})
	return nil
}

// lateStart is how long after a start the work is done that a start need not wait for.
const lateStart = 2 * time.Second

// afterStart does, once, the work that a start need not wait for.
func (r *Runtime) afterStart(ctx context.Context) {
	if !r.containerd.Embedded() {
		return
	}
	t := time.NewTimer(lateStart)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return
	case <-t.C:
	}
	if err := r.containerd.SettlePrograms(); err != nil {
		r.cfg.Log.Warn("runc and the keeper will be unpacked again at the next start", "err", err)
	}
}

// Close ends what runs in this process. Pods continue, and the next New finds them. Without pods, it leaves neither
// process nor mount behind.
func (r *Runtime) Close() error {
	if r.containerd == nil { // it could not be started
		return nil
	}
	r.sandboxes.Stop()
	r.sandboxes.Drop()
	r.cancel()
	r.wg.Wait()
	r.containers.Wait()
	r.images.Wait()
	r.containers.Detach()
	err := r.containerd.Stop()
	if r.restored && len(r.containers.All()) == 0 && len(r.records.uids()) == 0 {
		err = errors.Join(err, unmountRunDir(r.cfg.RunDir))
	}
	return err
}

// ImportDir imports the archives in a directory that are new or have changed: see image.Store.
func (r *Runtime) ImportDir(ctx context.Context, dir string) ([]string, error) {
	return r.images.ImportDir(ctx, dir)
}

// NetworkChanged has to be called when the network becomes ready, or its range changes: sandboxes made in advance
// have addresses of the old range and are replaced.
func (r *Runtime) NetworkChanged(context.Context) {
	r.sandboxes.Drop()
	r.sandboxes.Kick()
}

// RangeGiven says which range of pod addresses this node has been given. A pod with an address of another one is not whole any
// more: packets to it go to the node that has that range now.
func (r *Runtime) RangeGiven(pods netip.Prefix) {
	r.given.Store(&pods)
	for _, uid := range r.records.uids() {
		if rec := r.records.get(uid); rec != nil && rec.Whole && !r.whole(rec) {
			r.cfg.Log.Warn("a pod's address is not this node's any more: the pod gets another one", "pod", rec.Config.PodNamespace+"/"+rec.Config.PodName,
				"address", rec.Sandbox.Addr, "range", pods)
			r.events.send(cri.Event{PodUID: uid})
		}
	}
}

// whole reports whether a pod's sandbox is complete, and has an address that leads to it.
func (r *Runtime) whole(rec *record) bool {
	given := r.given.Load()
	return rec.Whole && (given == nil || !rec.Sandbox.Addr.IsValid() || given.Contains(rec.Sandbox.Addr))
}

// Uninstall removes every pod. Images and the data directory stay. Afterwards only Close may be called.
func (r *Runtime) Uninstall(ctx context.Context) error {
	pods, err := r.Pods(ctx)
	errs := []error{err}
	for _, p := range pods {
		errs = append(errs, r.removePod(r.ns(ctx), p.UID))
	}
	r.sandboxes.Stop()
	r.sandboxes.Drop()
	r.images.Wait() // a comparison or an import in the background holds temporary snapshots
	return errors.Join(append(errs, r.containerd.EndTasks(ctx))...)
}

// Pods implements cri.Runtime.
func (r *Runtime) Pods(ctx context.Context) ([]cri.Pod, error) {
	uids := map[string]bool{}
	for _, uid := range r.records.uids() {
		uids[uid] = true
	}
	for _, c := range r.containers.All() {
		uids[c.Meta.PodUID] = true
	}
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

// Pod implements cri.Runtime. It is answered from memory, which the event stream keeps up to date.
func (r *Runtime) Pod(_ context.Context, uid string) (cri.Pod, error) {
	p := cri.Pod{UID: uid}
	if rec := r.records.get(uid); rec != nil {
		p.Sandbox = r.sandbox(rec)
	}
	for _, c := range r.containers.OfPod(uid) {
		if c.Meta.Name != pauseName {
			p.Containers = append(p.Containers, c.Report())
		}
	}
	slices.SortFunc(p.Containers, func(a, b cri.Container) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return p, nil
}

// ns gives a context containerd's namespace and log: see embed.Containerd.
func (r *Runtime) ns(ctx context.Context) context.Context { return r.containerd.Context(ctx) }
