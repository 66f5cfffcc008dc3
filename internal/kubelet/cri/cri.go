package cri

import (
	"context"
	"io"
	"net/netip"
	"time"
)

// Runtime makes sandboxes and containers. Every method may be called again after any failure or crash, and then
// either finishes the work or reports that it is done: Ensure and Remove are idempotent. Calls for different pods run
// concurrently, and so do calls for different containers of one pod once its sandbox is there; calls for one
// container, and for a sandbox, come one after the other, except that StopContainer may run beside everything.
type Runtime interface {
	// Pods returns everything that this runtime has of minik8s, half-made sandboxes and containers included.
	Pods(ctx context.Context) ([]Pod, error)
	// Pod returns what the runtime has of one pod; without any, a Pod with neither sandbox nor containers.
	Pod(ctx context.Context, uid string) (Pod, error)

	// EnsureSandbox gives the pod its namespaces, address, hostname and /etc files. A sandbox that exists and is
	// whole is returned unchanged.
	EnsureSandbox(ctx context.Context, cfg SandboxConfig) (Sandbox, error)
	// RemoveSandbox undoes EnsureSandbox: address, namespaces, mounts, files. Containers must be
	// removed before.
	RemoveSandbox(ctx context.Context, uid string) error

	// CreateContainer prepares a container (snapshot, spec, process); it does not start. The image
	// must be present. The id is chosen by the runtime.
	CreateContainer(ctx context.Context, cfg ContainerConfig) (id string, err error)
	// StartContainer runs a created container. The error for a command that cannot be executed is a *StartError, with
	// the reason and exit code to show; from then on the container's StartError has it, too.
	StartContainer(ctx context.Context, id string) error
	// StopContainer sends the image's or cfg's stop signal, waits up to grace, then kills. It returns
	// when the container has exited. On a container that is not running it does nothing.
	StopContainer(ctx context.Context, id string, grace time.Duration) error
	// RemoveContainer removes a container that is not running, with its snapshot (a running one
	// is killed first). Its log file stays.
	RemoveContainer(ctx context.Context, id string) error

	// Events sends an Event for each change of state, whether caused by a call above or not: a container started,
	// exited, was OOM-killed. It comes from the runtime's event stream, not from polling. The channel closes when ctx
	// ends. After a gap in the stream it sends an Event with an empty PodUID, which means that everything may have
	// changed.
	Events(ctx context.Context) <-chan Event

	// Stats is what every running container uses, and what the pods of these use as a whole. rest says of which containers, by
	// their cgroups, Usage.Rest is read, too; nil: of none.
	Stats(ctx context.Context, rest func(cgroup string) bool) ([]Stats, error)
	// Files is where every running container's files are.
	Files(ctx context.Context) ([]Files, error)

	Streams
	Images
}

// Images is the image side of the runtime.
type Images interface {
	// ImageStatus returns the image ref if it is present; nil, nil if it is not.
	ImageStatus(ctx context.Context, ref string) (*Image, error)
	// PullImage fetches ref from its registry. progress, which may be nil, is called now and then. Errors wrap
	// ErrImageNotFound, ErrImageUnauthorized or ErrRegistryUnavailable where one of these is the reason (errors.Is).
	// Concurrent pulls of one ref are one pull.
	PullImage(ctx context.Context, ref string, auth *Auth, progress func(Progress)) (*Image, error)
	// ImportImages reads an OCI or Docker archive (tar, also gzip or zstd).
	ImportImages(ctx context.Context, archive io.Reader) ([]Image, error)
	// ListImages returns all images of this node. The error is the runtime's.
	ListImages(ctx context.Context) ([]Image, error)
	// RemoveImage removes the name ref of an image, or by its id the image with all its names. It is no error if it is
	// not there. Running containers keep their files.
	RemoveImage(ctx context.Context, ref string) error
}

// Pod is what the runtime has of one pod.
type Pod struct {
	UID        string
	Sandbox    *Sandbox // nil: none
	Containers []Container
}

// Sandbox has a pod's shared namespaces.
type Sandbox struct {
	// ID is unique: a sandbox that replaces this one has another.
	ID                            string
	PodUID, PodNamespace, PodName string
	CreatedAt                     time.Time
	// Addresses of the pod; the node's own with HostNetwork.
	Addresses   []netip.Addr
	HostNetwork bool
	// Whole is false for a sandbox that is half-made, or whose namespaces were lost (by a reboot).
	Whole bool
	// Scratch is a directory of the sandbox for small files that containers write to. Its total size is bounded, and
	// it is removed with the sandbox. Empty: the runtime has none.
	Scratch string
}

// SandboxConfig is the configuration of a sandbox.
type SandboxConfig struct {
	PodUID, PodNamespace, PodName string
	Hostname, Domain              string
	HostNetwork, HostPID, HostIPC bool
	ShareProcessNamespace         bool
	HostPorts                     []HostPort
	DNS                           DNS
	HostAliases                   []HostAlias
	Sysctls                       map[string]string
	// CgroupParent is the pod's cgroup, made and owned by the kubelet's cgroup side: "/minik8s/burstable/pod<uid>".
	CgroupParent string
	Resources    Resources // of the pod as a whole
	LogDir       string
}

// DNS is the content of the pod's /etc/resolv.conf. All empty: the node's own file.
type DNS struct {
	Servers, Searches, Options []string
}

// HostAlias is a line of /etc/hosts.
type HostAlias struct {
	IP        string
	Hostnames []string
}

// HostPort forwards a port of the node to the pod.
type HostPort struct {
	HostIP        string // empty: every address
	HostPort      int32
	ContainerPort int32
	Protocol      string // TCP, UDP or SCTP
}

// ContainerConfig is the configuration of a container. The pod's settings are final: the runtime adds no defaults,
// except that it uses the image's command, arguments, environment, user, working directory and stop signal where the
// config leaves them empty.
type ContainerConfig struct {
	PodUID, PodNamespace, PodName string
	Name                          string
	// Attempt is the restart count. Name and attempt are unique in the pod.
	Attempt    int
	Image      string // as the pod names it; must be present
	Command    []string
	Args       []string
	Env        []EnvVar
	WorkingDir string
	Mounts     []Mount
	Devices    []string
	// LogPath is the file for stdout and stderr, in the CRI format.
	LogPath string
	// TargetID is the running container of the same pod whose process namespace it shares; empty: its own, or the
	// pod's. It ends when that container ends.
	TargetID     string
	Stdin        bool
	StdinOnce    bool
	TTY          bool
	StopSignal   string
	Resources    Resources
	OOMScoreAdj  int // clamped to what the process may set
	Security     Security
	CgroupParent string
	Labels       map[string]string // kept and reported back in Container.Labels
}

// EnvVar is a variable of the environment.
type EnvVar struct{ Name, Value string }

// Mount is a directory or file of the host in the container.
type Mount struct {
	HostPath, ContainerPath string
	ReadOnly                bool
	// Propagation is "", "HostToContainer" or "Bidirectional".
	Propagation string
}

// Resources are the settings of a cgroup; 0 means unset.
type Resources struct {
	CPUShares   uint64 // cgroup v1 scale, 2 to 262144; converted to a weight on v2
	CPUQuota    int64  // microseconds in each CPUPeriod
	CPUPeriod   uint64
	MemoryLimit int64 // bytes
	PidsLimit   int64
}

// Security is the user and the rights of the process.
type Security struct {
	// RunAsUser nil: the image's user. RunAsGroup nil: that user's group.
	RunAsUser, RunAsGroup *int64
	SupplementalGroups    []int64
	// StrictGroups leaves out the groups that the image's /etc/group has the user in.
	StrictGroups     bool
	Privileged       bool
	ReadOnlyRootFS   bool
	NoNewPrivileges  bool
	AddCapabilities  []string // without CAP_; "ALL"
	DropCapabilities []string
	// Seccomp is "RuntimeDefault" (also if empty), "Unconfined" or the path of a profile. The runtime's default
	// allows programs of the machine's own architecture only.
	Seccomp string
	// MaskProc false leaves /proc unmasked (procMount: Unmasked).
	MaskProc bool
}

// ContainerState is a state in a container's life cycle.
type ContainerState int

// The states of a container, in order; a container never goes back.
const (
	Created ContainerState = iota
	Running
	Exited
)

// Container is one container as the runtime sees it.
type Container struct {
	ID, PodUID, Name string
	SandboxID        string // the sandbox it was made in
	Attempt          int
	State            ContainerState
	CreatedAt        time.Time
	StartedAt        time.Time
	FinishedAt       time.Time
	ExitCode         int32
	OOMKilled        bool
	// Lost: it ended with the machine, or even before, at some time before FinishedAt. ExitCode is made up.
	Lost bool
	// StartError is why it could not be started; it is then Exited and never ran.
	StartError string
	// Signal that ended it; 0 if none did.
	Signal int
	Pid    uint32
	// Image is the reference it was made from, ImageID the digest.
	Image, ImageID string
	LogPath        string
	Cgroup         string // "/minik8s/podUID/ID"; empty: the runtime does not say
	Labels         map[string]string
}

// Event is a change of a container.
type Event struct {
	PodUID      string
	ContainerID string
}

// Stats is what a running container, or a pod as a whole, uses.
type Stats struct {
	// Container and ContainerID are empty for the pod as a whole.
	PodUID, Container, ContainerID string
	Cgroup                         string // "/minik8s/podUID/ID"
	Started                        time.Time
	Time                           time.Time // when this was read
	Usage                                    // of a pod as a whole, CPU and memory alone
	// Network is what went through the pod's network interface: of a pod as a whole that has one, and runs.
	Network *Network
}

// Usage is what a cgroup has used since it was made, and what it has now. What the kernel does not count is 0.
type Usage struct {
	CPU                 uint64 // nanoseconds
	UserCPU, SystemCPU  uint64 // nanoseconds; v1 counts them in ticks, so that their sum may not be CPU
	Memory, WorkingSet  uint64 // bytes; the working set is what the kernel could not drop at once
	RSS, Cache, Mapped  uint64 // bytes; RSS is anonymous memory
	Swap                uint64 // bytes
	Faults, MajorFaults uint64
	Rest
}

// Rest is of Usage what is more to read than to know every second.
type Rest struct {
	Periods, ThrottledPeriods, Throttled           uint64 // of the CPU limit; Throttled in nanoseconds
	Peak, OOMKills                                 uint64 // Peak is the most of Memory
	Processes                                      uint64 // processes and threads
	ReadBytes, WrittenBytes, ReadCalls, WriteCalls uint64 // of block devices
	// Pressure is how long tasks stood still for want of a resource; nil with cgroups v1, which do not say.
	Pressure *Pressure
}

// Pressure is pressure stall information (Linux, Documentation/accounting/psi.rst).
type Pressure struct{ CPU, Memory, IO Stall }

// Stall is how long some of the tasks, or all of them, stood still.
type Stall struct{ Some, Full Waited }

// Waited is a time in microseconds, and the kernel's averages of the last 10, 60 and 300 seconds, in hundredths of a percent.
type Waited struct{ Total, Avg10, Avg60, Avg300 uint64 }

// Files are the directories with what a container has written.
type Files struct {
	PodUID, ContainerID string
	// Layer has its root's changes, Log its log. Empty: there is none.
	Layer, Log string
}

// Network is what an interface has received and sent.
type Network struct {
	Interface                                  string
	Received, Sent                             uint64 // bytes
	PacketsIn                                  uint64
	PacketsOut                                 uint64
	ErrorsIn, ErrorsOut, DroppedIn, DroppedOut uint64
}

// Image is an image on this node.
type Image struct {
	ID      string   // sha256:... of its config
	Tags    []string // references with a tag
	Digests []string // references with a digest
	Size    int64    // bytes, compressed as stored
	// User is what the image's config says: "", "1000", "app:app".
	User string
}

// Auth is the credentials for a registry.
type Auth struct{ Username, Password, Token string }

// Progress of a pull, in bytes. Total is 0 as long as it is not known.
type Progress struct {
	Ref         string
	Done, Total int64
}
