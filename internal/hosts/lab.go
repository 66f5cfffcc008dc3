package hosts

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Lab is a network with hosts in it.
type Lab struct {
	binary, images string
	dir            string
	hub            *namespace
	subnets        []netip.Prefix
	hosts          []*Host
}

// New makes a network without hosts. binary is the minik8sd that runs on them, images a directory of archives that
// they import. Files go to a new directory in the system's directory for temporary files.
func New(binary, images string) (_ *Lab, err error) {
	l := &Lab{binary: binary, images: images}
	if l.dir, err = os.MkdirTemp("", "hosts-"); err != nil {
		return nil, err
	}
	if l.hub, err = newNamespace(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(l.dir))
	}
	err = l.hub.do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644) })
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close ends the daemons and their pods and removes all files.
func (l *Lab) Close() error {
	var errs []error
	for _, h := range l.hosts {
		errs = append(errs, h.close())
	}
	l.hub.close()
	return errors.Join(append(errs, os.RemoveAll(l.dir))...)
}

// Host returns a host by its name; nil if there is none.
func (l *Lab) Host(name string) *Host {
	for _, h := range l.hosts {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// Hosts returns all hosts, in the order in which they were added.
func (l *Lab) Hosts() []*Host { return l.hosts }

// subnet is the range of a subnet's addresses: 10.98.1.0/24 for the first.
func subnet(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 98, byte(i + 1), 0}), 24)
}

// router is the address of the network's own end in a subnet.
func router(p netip.Prefix) netip.Addr {
	a := p.Addr().As4()
	a[3] = 254
	return netip.AddrFrom4(a)
}

func bridge(i int) string { return fmt.Sprint("br", i+1) }

// addSubnets makes bridges until there are n.
func (l *Lab) addSubnets(n int) error {
	for i := len(l.subnets); i < n; i++ {
		p := subnet(i)
		err := l.hub.do(func() error {
			attrs := netlink.NewLinkAttrs()
			attrs.Name = bridge(i)
			attrs.HardwareAddr = net.HardwareAddr{2, 'h', 'u', 'b', 0, byte(i + 1)} // else it is that of a port, and changes with them
			br := &netlink.Bridge{LinkAttrs: attrs}
			if err := netlink.LinkAdd(br); err != nil {
				return err
			}
			if err := netlink.AddrAdd(br, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(router(p), p.Bits()))}); err != nil {
				return err
			}
			return netlink.LinkSetUp(br)
		})
		if err != nil {
			return fmt.Errorf("the network: %w", err)
		}
		l.subnets = append(l.subnets, p)
	}
	return nil
}

// Add adds a host to a subnet, which are counted from 1.
func (l *Lab) Add(name string, in int) (*Host, error) {
	if l.Host(name) != nil {
		return nil, fmt.Errorf("there is a host %s already", name)
	}
	if err := l.addSubnets(in); err != nil {
		return nil, err
	}
	a := l.subnets[in-1].Addr().As4()
	a[3] = byte(len(l.hosts) + 1)
	h := &Host{Name: name, Address: netip.AddrFrom4(a), lab: l, dir: filepath.Join(l.dir, name)}
	h.link = fmt.Sprint("to-", len(l.hosts)+1)
	h.port = h.link
	var err error
	if h.ns, err = newNamespace(); err != nil {
		return nil, err
	}
	l.hosts = append(l.hosts, h)
	if err := l.connect(h, in-1); err != nil {
		return nil, fmt.Errorf("host %s: %w", name, err)
	}
	return h, h.prepare()
}

// connect lays the link between a host and its bridge.
func (l *Lab) connect(h *Host, in int) error {
	err := l.hub.do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = h.link
		veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(h.ns.file.Fd()))}
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		if err := plug(h.link, bridge(in)); err != nil {
			return err
		}
		return up(h.link)
	})
	if err != nil {
		return err
	}
	return h.ns.do(func() error {
		eth0, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		p := netip.PrefixFrom(h.Address, l.subnets[in].Bits())
		if err := netlink.AddrAdd(eth0, &netlink.Addr{IPNet: ipNet(p)}); err != nil {
			return err
		}
		if err := errors.Join(up("lo"), up("eth0")); err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: router(l.subnets[in]).AsSlice()})
	})
}

// plug makes a link a port of a bridge.
func plug(name, bridge string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	br, err := netlink.LinkByName(bridge)
	if err != nil {
		return err
	}
	return netlink.LinkSetMaster(link, br)
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}
}

// namespace is a network namespace with a thread that is always in it. Processes are started on that thread, so that
// they are in the namespace, and end with the thread.
type namespace struct {
	file *os.File
	work chan func()
}

func newNamespace() (*namespace, error) {
	n, made := &namespace{work: make(chan func())}, make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			n.file, err = os.Open("/proc/thread-self/ns/net")
		}
		made <- err
		if err != nil {
			return
		}
		for f := range n.work {
			f()
		}
		n.file.Close() //nolint:errcheck // it was only read
	}()
	return n, <-made
}

// do calls f in the namespace.
func (n *namespace) do(f func() error) error {
	done := make(chan error)
	n.work <- func() { done <- f() }
	return <-done
}

func (n *namespace) close() { close(n.work) }
