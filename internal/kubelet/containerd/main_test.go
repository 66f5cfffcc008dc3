package containerd

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// inNetNS marks the second run of the test binary, which has a network namespace of its own.
const inNetNS = "MINIK8S_TEST_NETNS"

// TestMain runs the tests in a network namespace that goes with the process, so that they touch nothing
// of the machine's network and run beside others. Without root only the unit tests run.
func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	if os.Getenv(inNetNS) == "" {
		tmp, err := os.MkdirTemp("", "mk-")
		if err != nil {
			fmt.Fprintln(os.Stderr, "containerd tests:", err)
			os.Exit(1)
		}
		cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
		cmd.Env = append(os.Environ(), inNetNS+"=1", "TMPDIR="+tmp)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		err = cmd.Run()
		sweep(tmp)
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			fmt.Fprintln(os.Stderr, "containerd tests: a network namespace:", err)
			os.Exit(1)
		}
		os.Exit(cmd.ProcessState.ExitCode())
	}
	if os.Getenv(crashDir) != "" {
		os.Exit(m.Run()) // in the namespace of the test that started it
	}
	if err := makeHost(); err != nil {
		fmt.Fprintln(os.Stderr, "containerd tests: the namespace's network:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// sweep removes what tests that were cut short, by a panic or a timeout, have left: it knows them by
// their directories in tmp.
func sweep(tmp string) {
	defer os.RemoveAll(tmp)
	dirs, err := filepath.Glob(filepath.Join(tmp, "minik8s-test-*"))
	if err != nil || len(dirs) == 0 {
		return
	}
	kill := func(pid string) {
		if n, err := strconv.Atoi(pid); err == nil {
			unix.Kill(n, unix.SIGKILL)
		}
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, l := range lines {
		if data, err := os.ReadFile(l); err == nil && strings.Contains(string(data), tmp) {
			kill(filepath.Base(filepath.Dir(l)))
		}
	}
	for _, d := range dirs {
		roots, _ := filepath.Glob("/sys/fs/cgroup/*/" + filepath.Base(d) + "*")
		for _, root := range append(roots, filepath.Join("/sys/fs/cgroup", filepath.Base(d))) {
			filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
				if err == nil && e.Name() == "cgroup.procs" {
					if data, err := os.ReadFile(path); err == nil {
						for _, pid := range strings.Fields(string(data)) {
							kill(pid)
						}
					}
				}
				return nil
			})
			removeCgroup(root)
		}
	}
	if data, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
		mounts := strings.Split(strings.TrimSpace(string(data)), "\n")
		for _, m := range slices.Backward(mounts) {
			if f := strings.Fields(m); len(f) > 4 && strings.HasPrefix(f[4], tmp+"/") {
				unix.Unmount(f[4], unix.MNT_DETACH)
			}
		}
	}
}

// makeHost gives the namespace what a machine has: an address and a default route.
func makeHost() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "eth0"
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "wire0"}
	if err := netlink.LinkAdd(veth); err != nil {
		return err
	}
	for _, name := range []string{"lo", "eth0", "wire0"} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
	}
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	addr, err := netlink.ParseAddr("192.0.2.1/24")
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(link, addr); err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.IPv4(192, 0, 2, 254)})
}
