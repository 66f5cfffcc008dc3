package hosttest

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/rpc"
	"os"
	"os/exec"
	"syscall"

	"github.com/vishvananda/netlink"

	"minik8s/internal/machine"
)

// Unplug removes a bridge or another link.
func Unplug(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkDel(link)
}

// Machine is a host.
type Machine struct {
	cmd *exec.Cmd
	rpc *rpc.Client
}

type pipes struct {
	io.Reader
	io.WriteCloser
}

// Start starts a host, with a link eth0 to a bridge and this address. gateway may be invalid.
func Start(bridge string, addr netip.Prefix, gateway netip.Addr) (*Machine, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := machine.StartChild(cmd); err != nil {
		return nil, fmt.Errorf("a host: %w", err)
	}
	m := &Machine{cmd: cmd, rpc: rpc.NewClient(pipes{out, in})}
	if err := m.plug(bridge, addr, gateway); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *Machine) plug(bridge string, addr netip.Prefix, gateway netip.Addr) error {
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", m.cmd.Process.Pid))
	if err != nil {
		return err
	}
	defer ns.Close() //nolint:errcheck // it was only read
	if err := machine.Wire(fmt.Sprintf("wire%d", m.cmd.Process.Pid), bridge, ns); err != nil {
		return err
	}
	return m.Do("Plug", Plug{addr, gateway})
}

// Do has the host do what the method of Host is for.
func (m *Machine) Do(method string, args any) error {
	return m.rpc.Call("Host."+method, args, new(string))
}

// Ask is Do for a method that answers.
func (m *Machine) Ask(method string, args, answer any) error {
	return m.rpc.Call("Host."+method, args, answer)
}

// Range is the range of pods' addresses of the host with this number.
func Range(host int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(host + 1), 0}), 24)
}

// ByHand makes a pod without a Network, by a link and routes alone, also one to the pods of the other of two hosts. The
// answer is its address.
func (m *Machine) ByHand(pod string, host int, peer netip.Addr) (addr netip.Addr, err error) {
	return addr, m.Ask("ByHand", ByHand{pod, Range(host), Range(1 - host), peer}, &addr)
}

// Close ends the host.
func (m *Machine) Close() error {
	m.rpc.Close()        //nolint:errcheck // the process ends next
	m.cmd.Process.Kill() //nolint:errcheck // it may have ended
	var exit *exec.ExitError
	if err := m.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}
