package hosts

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"minik8s/internal/machine"
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
		err := l.hub.do(func() error { return machine.Bridge(bridge(i), netip.PrefixFrom(router(p), p.Bits())) })
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
	if err := l.hub.do(func() error { return machine.Wire(h.link, bridge(in), h.ns.file) }); err != nil {
		return err
	}
	p := l.subnets[in]
	return h.ns.do(func() error { return machine.Configure(netip.PrefixFrom(h.Address, p.Bits()), router(p)) })
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
