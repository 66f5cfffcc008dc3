package machine

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/vishvananda/netlink"

	"minik8s/internal/chroot"
)

// Address is the host's address inside the namespace.
const Address = "192.0.2.1"

// inside is the environment variable that marks the second run of the program.
const inside = "IN_A_MACHINE_OF_ITS_OWN"

// Run calls run in a network namespace of its own and ends the program with its exit code. Without root there can be
// no such namespace, and run is called in the present one.
func Run(run func() int) {
	if os.Geteuid() != 0 {
		os.Exit(run())
	}
	if os.Getenv(inside) == "" {
		os.Exit(again())
	}
	if err := chroot.Leave(nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := makeHost(); err != nil {
		fmt.Fprintln(os.Stderr, "a network namespace of our own:", err)
		os.Exit(1)
	}
	os.Unsetenv(inside) //nolint:errcheck // the name is valid
	os.Exit(run())
}

// again runs this program in a new network namespace and returns its exit code.
func again() int {
	// A temporary directory of its own, by which sweep recognises what this run made.
	tmp, err := os.MkdirTemp("", "mk-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "a directory of our own:", err)
		return 1
	}
	defer sweep(tmp)
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	// Nor does it ask this machine's logind for time before a shutdown.
	cmd.Env = append(os.Environ(), inside+"=1", "TMPDIR="+tmp, "DBUS_SYSTEM_BUS_ADDRESS=unix:path="+filepath.Join(tmp, "no-bus"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, "a network namespace of our own:", err)
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// makeHost gives the namespace what a machine has.
func makeHost() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "eth0"
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "wire0"}); err != nil {
		return err
	}
	wire, err := netlink.LinkByName("wire0")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(wire); err != nil {
		return err
	}
	return Configure(netip.MustParsePrefix(Address+"/24"), netip.MustParseAddr("192.0.2.254"))
}
