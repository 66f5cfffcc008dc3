package stats

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/cri"
)

// Interfaces reads what went through the machine's interfaces: those of the network namespace that the calling thread is
// in. It remembers which of them are links to pods, so that these are asked once: the kernel answers only while nobody
// changes links. The zero value is ready; it is not for concurrent use.
type Interfaces struct {
	Loopback bool // have it, too
	// Ways is how long the default routes count that were read: there is a route to each pod beside them. 0: not at all.
	Ways  time.Duration
	ways  []string
	asked time.Time // when these were read
	pairs map[string]bool
}

// Read returns the interfaces, but for loopback and what is one end of a pair (veth), which is a link to a pod or to something else
// on this machine: what goes through that would count twice. A pair through which a default route leads is a way out of the
// machine, as where that is itself a namespace. The default route's interface is first, the others are by name.
func (x *Interfaces) Read() ([]cri.Network, error) {
	proc, err := procfs.NewFS("/proc/thread-self") // /proc/net is the network of the process' first thread
	if err != nil {
		return nil, err
	}
	all, err := proc.NetDev()
	if err != nil {
		return nil, err
	}
	if age := time.Since(x.asked); age < 0 || age >= x.Ways {
		x.ways, x.asked = waysOut(proc), time.Now()
	}
	pairs, err := x.which(all)
	if err != nil {
		return nil, err
	}
	var out []cri.Network
	for name, d := range all {
		if name == "lo" && !x.Loopback || pairs[name] && !slices.Contains(x.ways, name) {
			continue
		}
		out = append(out, cri.Network{Interface: name, Received: d.RxBytes, Sent: d.TxBytes, PacketsIn: d.RxPackets, PacketsOut: d.TxPackets,
			ErrorsIn: d.RxErrors, ErrorsOut: d.TxErrors, DroppedIn: d.RxDropped, DroppedOut: d.TxDropped})
	}
	slices.SortFunc(out, func(a, b cri.Network) int {
		return cmp.Or(cmp.Compare(rank(x.ways, a.Interface), rank(x.ways, b.Interface)), cmp.Compare(a.Interface, b.Interface))
	})
	return out, nil
}

// rank is a name's place in a list, and that after it for all others.
func rank(list []string, name string) int {
	if i := slices.Index(list, name); i >= 0 {
		return i
	}
	return len(list)
}

// waysOut are the interfaces of default routes, that which the kernel takes first.
func waysOut(proc procfs.FS) []string {
	routes, err := proc.NetRoute()
	if err != nil {
		return nil // it has a line that procfs does not know; little depends on the order
	}
	routes = slices.DeleteFunc(routes, func(r procfs.NetRouteLine) bool { return r.Destination != 0 || r.Mask != 0 })
	slices.SortStableFunc(routes, func(a, b procfs.NetRouteLine) int { return cmp.Compare(a.Metric, b.Metric) })
	var out []string
	for _, r := range routes {
		out = append(out, r.Iface)
	}
	return out
}

// which of the interfaces are an end of a pair.
func (x *Interfaces) which(all procfs.NetDev) (map[string]bool, error) {
	known := x.pairs
	x.pairs = make(map[string]bool, len(all))
	socket := -1
	for name := range all {
		pair, ok := known[name]
		if !ok {
			if socket < 0 {
				var err error
				if socket, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
					return nil, err
				}
				defer unix.Close(socket) //nolint:errcheck // nothing was written
			}
			info, err := unix.IoctlGetEthtoolDrvinfo(socket, name) // loopback and others have no driver
			pair = err == nil && unix.ByteSliceToString(info.Driver[:]) == "veth"
		}
		x.pairs[name] = pair
	}
	return x.pairs, nil
}

// Networks are the interfaces of the machine, or the one of a pod; the first is the way out. They must not be changed.
func (s *Sample) Networks() iter.Seq2[int, *cri.Network] {
	return func(yield func(int, *cri.Network) bool) {
		if s.Network != nil && !yield(0, s.Network) {
			return
		}
		for i := range s.Interfaces {
			if !yield(i, &s.Interfaces[i]) {
				return
			}
		}
	}
}
