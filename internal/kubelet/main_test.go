package kubelet

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
)

// inNetNS marks the second run of the test binary, which has a network namespace of its own.
const inNetNS = "MINIK8S_TEST_NETNS"

// TestMain runs the tests in a network namespace that goes with the process, so that those with real
// containers touch nothing of the machine's network. Without root those are skipped.
func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	if os.Getenv(inNetNS) == "" {
		cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
		cmd.Env = append(os.Environ(), inNetNS+"=1")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			fmt.Fprintln(os.Stderr, "kubelet tests: a network namespace:", err)
			os.Exit(1)
		}
		os.Exit(cmd.ProcessState.ExitCode())
	}
	if err := makeHost(); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet tests: the namespace's network:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// makeHost gives the namespace what a machine has: an address and a default route.
func makeHost() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "eth0"
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "wire0"}); err != nil {
		return err
	}
	var eth netlink.Link
	for _, name := range []string{"lo", "wire0", "eth0"} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
		eth = link
	}
	addr, err := netlink.ParseAddr("192.0.2.1/24")
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(eth, addr); err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: eth.Attrs().Index, Gw: net.IPv4(192, 0, 2, 254)})
}
