package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/version"

	"minik8s/config"
	"minik8s/internal/apiserver"
	"minik8s/internal/apiserver/aggregator"
	"minik8s/internal/balancer"
	"minik8s/internal/certs"
	"minik8s/internal/client"
	"minik8s/internal/client/fallback"
	"minik8s/internal/client/local"
	"minik8s/internal/controller/sightings"
	"minik8s/internal/datadir"
	"minik8s/internal/gpu"
	"minik8s/internal/identity"
	"minik8s/internal/informer"
	"minik8s/internal/kubelet"
	"minik8s/internal/kubelet/cgroup"
	"minik8s/internal/kubelet/containerd"
	"minik8s/internal/kubelet/work"
	"minik8s/internal/masters"
	"minik8s/internal/memory"
	"minik8s/internal/metrics"
	"minik8s/internal/metrics/query"
	"minik8s/internal/network"
	"minik8s/internal/nft"
	"minik8s/internal/policy"
	"minik8s/internal/proxy"
	"minik8s/internal/registry"
	"minik8s/internal/supervise"
	"minik8s/internal/tokens"
)

// Version is that of minik8s; the build sets it.
var Version = "0.1.0"

// kubernetes is the version of the Kubernetes API that is implemented.
const kubernetes = "1.36"

// VersionInfo is what /version says.
func VersionInfo() version.Info {
	major, minor, _ := strings.Cut(kubernetes, ".")
	info := version.Info{Major: major, Minor: minor, GitVersion: "v" + kubernetes + ".0+minik8s." + Version, // not a pre-release version: charts require kubeVersion >=1.25
		GitTreeState: "clean", Compiler: "gc", Platform: "linux/" + goarch(), GoVersion: goVersion()}
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			switch s.Key {
			case "vcs.revision":
				info.GitCommit = s.Value
			case "vcs.time":
				info.BuildDate = s.Value
			case "vcs.modified":
				if s.Value == "true" {
					info.GitTreeState = "dirty"
				}
			}
		}
	}
	return info
}

// Daemon is minik8sd: the parts of its roles.
type Daemon struct {
	cfg   *config.Config
	log   *slog.Logger
	group *supervise.Group
	dir   *datadir.Dir
	lock  *os.File
	// cgroups, while it is open, prevents other daemons from using our pods' cgroup.
	cgroups io.Closer
	// listener is the API's port, and on a worker alone the balancer's. It is opened before anything is changed.
	listener *net.TCPListener
	// kubeletListener is the port of the kubelet's server; nil without a worker.
	kubeletListener *net.TCPListener
	kubeletPort     int
	began           time.Time

	// What the parts share. Each is set by the part that makes it, before that part is ready and so before the parts
	// that use it start.
	storage storage // nil on a worker
	store   openStore
	reg     *registry.Registry
	ca      *certs.Authority
	// extensions are the ways to Services that serve API groups.
	extensions atomic.Pointer[aggregator.Services]
	frontCA    []byte            // the front proxy's CA, in PEM
	tokens     *tokens.Authority // for service accounts
	creds      credentials
	// identity is how a worker that is not a master is known; nil on a master.
	identity *identity.Identity
	// masters is where the masters were last, and balancer what leads to them; on a master those are the others.
	masters  *masters.Book
	balancer *balancer.Balancer
	// door is a master's API port, and front the client of its kubelet; nil on a worker.
	door  *door
	front *fallback.Client
	// loaded is the kubelet's client of reg when that can be read, and serving whether the API serves, for those who do not
	// wait for that.
	loaded  atomic.Pointer[local.Client]
	serving atomic.Bool
	asked   struct { // see useful
		sync.Mutex
		at     time.Time
		useful bool
	}
	// views are what this machine's parts share of what they read; see nodeViews.
	views     *informer.Views
	makeViews sync.Once
	// usage answers what nodes and pods use, on a master; see nodeMetrics.
	usage     *metrics.API
	makeUsage sync.Once
	// queries answers for custom and external metrics, on a master; nil without the setting prometheus.
	queries *query.Source
	// gpuConfig is what the two halves of package gpu share, on a master; see gpus.
	gpuConfig gpu.Config
	gpuOnce   sync.Once
	// apiServer is there from the start of the part of that name; it has the registry of images, too.
	apiServer *apiserver.Server
	// functions is what calls of functions need on every master.
	functions functionParts
	// mastersWay is how calls go to other masters.
	mastersWay  http.RoundTripper
	mastersOnce sync.Once
	network     *network.Network // the pods' network; nil on a master that is no worker and may not change the host's network
	runtime     *containerd.Runtime
	work        *work.Limit // whose turn it is to use the processors: the kubelet's and the runtime's
	// filter writes the table of Services, for the proxy and the policies: so neither takes the other for a stranger.
	filter       *nft.Kernel
	policies     atomic.Pointer[policy.Enforcer] // nil until it runs
	heard        *heard                          // whether masters hear this node
	clusterViews *informer.Views                 // what a master's parts that follow the cluster share
	// sightings is when this master saw what another may have dated.
	sightings *sightings.Sightings
	led       atomic.Pointer[supervise.Group] // the parts that run while this master leads
	kubelet   atomic.Pointer[kubelet.Kubelet] // nil until it runs; the API's goroutines read it
	proxy     atomic.Pointer[proxy.Proxy]     // the same of the data path of Services
}

// New locks the data directory, makes the cluster's certificates if there are none, and lists the parts. It starts
// nothing. Errors, such as a directory, port or cgroup in use by another daemon, say what to do.
func New(cfg *config.Config, log *slog.Logger) (*Daemon, error) {
	d := &Daemon{cfg: cfg, log: log, began: time.Now(), filter: nft.NewKernel(), sightings: sightings.New(), heard: newHeard(cfg.HeartbeatInterval)}
	if err := d.openPorts(); err != nil {
		d.Close()
		if _, serr := os.Stat(d.path(datadir.LockName)); serr == nil {
			if lerr := d.claim(); lerr != nil { // another daemon in this directory is the likelier reason
				return nil, lerr
			}
			d.Close()
		}
		return nil, err
	}
	if err := d.findMasters(); err != nil {
		d.Close()
		return nil, err
	}
	if cfg.Has(config.Master) {
		var err error
		if d.queries, err = d.newMetricsSource(); err != nil {
			d.Close()
			return nil, err
		}
		if d.storage, err = d.newStorage(); err != nil {
			d.Close()
			return nil, err
		}
	}
	if err := d.claim(); err != nil {
		d.Close()
		return nil, err
	}
	follow := !cfg.NodeIP.IsValid() // an address that was given stays, whatever this machine has
	if follow {
		cfg.NodeIP = nodeIP(d.someMaster())
		if cfg.Has(config.Master) && cfg.ServiceCIDR.Contains(cfg.NodeIP) {
			d.Close()
			return nil, fmt.Errorf("service-cidr: %s has the address of this machine, %s: choose a range that no machine is in", cfg.ServiceCIDR, cfg.NodeIP)
		}
	}
	if err := d.holdCgroup(); err != nil {
		d.Close()
		return nil, err
	}
	if err := d.dir.Mark(d.cgroupRoot()); err != nil {
		d.Close()
		return nil, err
	}
	parts := d.apiParts()
	if d.hasNetwork() {
		var err error
		if d.network, err = network.New(d.networkConfig()); err != nil {
			d.Close()
			return nil, err
		}
	}
	if cfg.Has(config.Worker) {
		parts = append(parts, d.workerParts()...)
	} else {
		parts = append(parts, d.masterNodeParts()...)
	}
	if follow {
		parts = append(parts, supervise.Part{Name: "address", Policy: supervise.Must, Run: d.runAddress})
	}
	d.group = supervise.New(log, parts...)
	return d, nil
}

// apiParts are the parts by which the other parts reach the API: a master itself, or the identity to reach one with.
func (d *Daemon) apiParts() []supervise.Part {
	parts := []supervise.Part{
		{Name: "credentials", Policy: supervise.Must, Run: d.runCredentials},
		{Name: "certificates", Policy: supervise.Keep, Run: d.runCertificates, After: []string{"credentials"}},
	}
	if d.cfg.Has(config.Master) {
		return append(parts, d.masterParts()...)
	}
	parts[0].After = []string{"balancer"}
	return append(parts, supervise.Part{Name: "balancer", Policy: supervise.Must, Run: d.runBalancer})
}

// api is the part after which a master's own API can be used; none on a worker, whose masters may be away.
func (d *Daemon) api() []string {
	if d.cfg.Has(config.Master) {
		return []string{"leader"}
	}
	return nil
}

// claim opens the data directory and takes its lock.
func (d *Daemon) claim() error {
	dir, err := datadir.Open(d.cfg.DataDir)
	if errors.As(err, new(*os.PathError)) {
		return fmt.Errorf("the data directory: %w; run as root, or choose another with --data-dir", err)
	}
	if err != nil {
		return fmt.Errorf("the data directory: %w", err)
	}
	d.dir = dir
	return d.takeLock()
}

// A daemon that was killed as it started a program leaves a process that has its files open, and so its lock, until that
// program begins: a moment later, or on a busy machine some.
const (
	lockPatience = 5 * time.Second
	lockPause    = 10 * time.Millisecond
)

// lives reports whether there is a process with this number.
func lives(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err == nil && n > 0 && !errors.Is(syscall.Kill(n, 0), syscall.ESRCH)
}

// takeLock takes the lock of the data directory; it is an error if another daemon has it. The lock ends with the
// process.
func (d *Daemon) takeLock() error {
	path := d.path(datadir.LockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("the data directory cannot be written: %w; run as root, or choose another with --data-dir", err)
	}
	for end := time.Now().Add(lockPatience); ; time.Sleep(lockPause) {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			break
		}
		pid := make([]byte, 16)
		n, _ := f.ReadAt(pid, 0) //nolint:errcheck // best effort: whose it is says the lock
		holder := strings.TrimSpace(string(pid[:n]))
		if lives(holder) || time.Now().After(end) {
			f.Close() //nolint:errcheck // it was only read
			return fmt.Errorf("another minik8sd (pid %s) uses %s: stop it, or choose another --data-dir", holder, d.cfg.DataDir)
		}
	}
	d.lock = f
	err = errors.Join(f.Truncate(0))
	_, werr := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return errors.Join(err, werr)
}

// holdCgroup takes the pods' cgroup; it is an error if another daemon's pods run in it. If it cannot be made at all,
// the parts that need it report that.
func (d *Daemon) holdCgroup() error {
	if !d.cfg.Has(config.Worker) {
		return nil
	}
	held, err := cgroup.New(d.cfg.CgroupRoot).Hold()
	if errors.Is(err, cgroup.ErrHeld) {
		return err
	}
	d.cgroups = held
	return nil
}

// cgroupRoot is the root of the pods' cgroups; empty without a worker.
func (d *Daemon) cgroupRoot() string {
	if !d.cfg.Has(config.Worker) {
		return ""
	}
	return d.cfg.CgroupRoot
}

func (d *Daemon) path(parts ...string) string {
	return filepath.Join(append([]string{d.cfg.DataDir}, parts...)...)
}

// Run starts the parts and returns when all have stopped: nil when ctx ended, ErrMoved when the machine has another address.
// ready is called once everything is up; it may be nil.
func (d *Daemon) Run(ctx context.Context, ready func()) error {
	defer d.Close()
	if d.cfg.Does(config.Collector) {
		memory.TuneCollector(func() {
			if d.cfg.Does(config.GiveBack) {
				memory.GiveBack(d.log)
			}
		})
	}
	lowerOOMScore(d.log)
	if d.cfg.Has(config.Master) {
		d.front = d.newFront(ctx)
	}
	return d.group.Run(ctx, func() {
		if d.cfg.Does(config.GiveBack) {
			go memory.GiveBackLater(ctx, d.log)
		}
		if ready != nil {
			ready()
		}
	})
}

// Close releases the data directory, the ports and the cgroup.
func (d *Daemon) Close() {
	if d.listener != nil {
		d.listener.Close() //nolint:errcheck // the server has closed it, if it ran
		d.listener = nil
	}
	if d.kubeletListener != nil {
		d.kubeletListener.Close() //nolint:errcheck // as above
		d.kubeletListener = nil
	}
	if d.cgroups != nil {
		d.cgroups.Close() //nolint:errcheck // as below
		d.cgroups = nil
	}
	if d.network != nil {
		d.network.Close() //nolint:errcheck // pods stay connected; only handles are closed
		d.network = nil
	}
	if d.usage != nil {
		d.usage.Collector.Close()
		d.usage = nil
	}
	if d.lock != nil {
		d.lock.Close() //nolint:errcheck // the kernel drops the lock either way
		d.lock = nil
	}
}

// Client acts in the cluster as the daemon itself; for tests and for the demo.
func (d *Daemon) Client() client.Interface { return local.New(d.reg, registry.System) }

// as is a client with the identity of a part.
func (d *Daemon) as(u registry.User) *local.Client { return local.New(d.reg, u) }

// asNode is a client with the identity of this machine's kubelet: in process on a master while that is of use, and else
// over HTTPS.
func (d *Daemon) asNode() client.Interface {
	if d.identity != nil {
		return d.identity.API()
	}
	return d.front
}

// Banner is the text of where the API, the kubeconfig and so on are.
func (d *Daemon) Banner() string {
	var b strings.Builder
	fmt.Fprintf(&b, "minik8s %s is up after %s: %s on node %s\n", Version, time.Since(d.began).Round(time.Millisecond),
		strings.Join(d.cfg.Roles, " and "), d.cfg.NodeName)
	if !d.cfg.Has(config.Master) {
		fmt.Fprintf(&b, "  cluster     %s, which leads to %s\n", d.ownAPI(), strings.Join(d.knownMasters(), ", "))
		fmt.Fprintf(&b, "  kubeconfig  export KUBECONFIG=%s\n", d.path(nodeKubeconfigName))
		return b.String()
	}
	fmt.Fprintf(&b, "  API         https://%s:%d\n", d.cfg.NodeIP, d.cfg.APIPort)
	fmt.Fprintf(&b, "  as root     curl --unix-socket %s http://minik8s/api/v1/pods\n", d.path(socketName))
	fmt.Fprintf(&b, "  kubeconfig  export KUBECONFIG=%s\n", d.path(kubeconfigName))
	return b.String()
}
