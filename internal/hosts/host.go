package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"minik8s/internal/client/remote"
	"minik8s/internal/logind/logindtest"
	"minik8s/internal/machine"
)

// Host is a machine of a Lab.
type Host struct {
	Name    string
	Address netip.Addr
	// Binary is the minik8sd that runs here, if it is another than the lab's.
	Binary string
	// ClockOffset is how far the daemon's time of day will be ahead of the machine's from the next start on.
	ClockOffset time.Duration

	lab        *Lab
	ns         *namespace
	link       string
	port       string          // of its bridge: the link, or the end of wire
	wire       *wire           // nil while nothing is delayed
	parted     map[string]bool // by Part; the names of its tables
	dir        string
	cut, lossy bool

	args   []string
	cmd    *exec.Cmd
	said   *tail
	exited chan struct{}
	client *remote.Client     // of its socket; nil until it was asked for
	logind *logindtest.Logind // nil: it has none
}

// prepare makes the data directory, with the images to import.
func (h *Host) prepare() error {
	archives, err := filepath.Glob(filepath.Join(h.lab.images, "*.tar"))
	if err != nil || len(archives) == 0 {
		return errors.Join(fmt.Errorf("no images in %s: run make images", h.lab.images), err)
	}
	to := filepath.Join(h.dir, "images")
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, a := range archives {
		if err := os.Link(a, filepath.Join(to, filepath.Base(a))); err == nil {
			continue
		}
		b, err := os.ReadFile(a)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(a)), b, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *Host) binary() string {
	if h.Binary != "" {
		return h.Binary
	}
	return h.lab.binary
}

// Dir is the host's data directory, and Pid its daemon's process; 0 before the first start.
func (h *Host) Dir() string { return h.dir }

// Pid is that of the daemon.
func (h *Host) Pid() int {
	if h.cmd == nil {
		return 0
	}
	return h.cmd.Process.Pid
}

// base are the flags that every command of the host's minik8sd needs.
func (h *Host) base() []string {
	return []string{"--data-dir", h.dir, "--cgroup-root", h.cgroup()}
}

func (h *Host) cgroup() string { return "/" + filepath.Base(h.lab.dir) + "-" + h.Name }

// Start starts the daemon with flags, beside those of the host itself. Without flags it starts as the last time.
func (h *Host) Start(flags ...string) error {
	if h.Running() {
		return fmt.Errorf("the daemon of %s runs already", h.Name)
	}
	if len(flags) > 0 {
		h.args = flags
	}
	own := append(h.base(), "--node-name", h.Name, "--clock-offset", h.ClockOffset.String())
	cmd := exec.Command(h.binary(), append(own, h.args...)...)
	h.said = &tail{}
	cmd.Stdout, cmd.Stderr = h.said, h.said
	cmd.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+logindtest.AddressIn(h.busDir()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := h.ns.do(cmd.Start); err != nil {
		return err
	}
	exited := make(chan struct{})
	h.cmd, h.exited = cmd, exited
	go func() {
		cmd.Wait() //nolint:errcheck // how it ended is not asked
		close(exited)
	}()
	return nil
}

// Running reports whether the daemon runs, or is stopped by SIGSTOP.
func (h *Host) Running() bool {
	if h.cmd == nil {
		return false
	}
	select {
	case <-h.exited:
		return false
	default:
		return true
	}
}

// Said is the end of what the daemon has printed since it was started.
func (h *Host) Said() string {
	if h.said == nil {
		return ""
	}
	return h.said.String()
}

// Signal sends the daemon a signal; after SIGKILL and SIGTERM it waits for its end, after SIGSTOP until it stands still.
func (h *Host) Signal(sig syscall.Signal) error {
	if !h.Running() {
		return fmt.Errorf("the daemon of %s does not run", h.Name)
	}
	if err := machine.SignalChild(h.cmd.Process, sig); err != nil {
		return err
	}
	if sig == syscall.SIGKILL || sig == syscall.SIGTERM {
		<-h.exited
	}
	return nil
}

// Wipe kills the daemon and removes all that it has made, as if the machine were set up anew.
func (h *Host) Wipe() error {
	if h.Running() {
		if err := h.Signal(syscall.SIGKILL); err != nil {
			return err
		}
	}
	var out []byte
	err := h.ns.do(func() (err error) {
		out, err = exec.Command(h.binary(), append(append([]string{"clean"}, h.base()...), "--yes")...).CombinedOutput()
		return err
	})
	if err != nil {
		return fmt.Errorf("cleaning %s: %w: %s", h.Name, err, out)
	}
	return nil
}

func (h *Host) close() error {
	var err error
	if h.cmd != nil {
		err = h.Wipe()
	}
	if h.client != nil {
		h.client.Close()
	}
	if h.wire != nil {
		err = errors.Join(err, h.wire.close())
	}
	if h.logind != nil {
		err = errors.Join(err, h.logind.Close())
	}
	h.ns.close()
	return err
}

// API is the API of a master, by its socket.
func (h *Host) API() (*remote.Client, error) {
	socket := filepath.Join(h.dir, "api.sock")
	if _, err := os.Stat(socket); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no master that runs", h.Name)
	}
	if h.client == nil {
		c, err := remote.New(remote.Config{Socket: socket})
		if err != nil {
			return nil, err
		}
		h.client = c
	}
	return h.client, nil
}

// Ready reports whether a master is.
func (h *Host) Ready(ctx context.Context) bool {
	c, err := h.API()
	if err != nil {
		return false
	}
	resp, err := c.Do(ctx, http.MethodGet, "/readyz", nil, "", nil)
	if err != nil {
		return false
	}
	resp.Body.Close() //nolint:errcheck // only its code is read
	return resp.StatusCode == http.StatusOK
}

// Ctl runs "minik8sd ctl" on the host and returns what it prints.
func (h *Host) Ctl(args ...string) (string, error) {
	return h.ctl(append([]string{"--data-dir", h.dir}, args...)...)
}

// CtlByKubeconfig runs ctl on the host as Kubectl runs kubectl: with the kubeconfig, and so by the same way to the API.
func (h *Host) CtlByKubeconfig(args ...string) (string, error) {
	return h.ctl(append([]string{"--kubeconfig", h.kubeconfig()}, args...)...)
}

func (h *Host) ctl(args ...string) (string, error) {
	cmd := exec.Command(h.binary(), append([]string{"ctl"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := h.ns.do(cmd.Run)
	if err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// Kubectl runs kubectl on the host, as its root would: with the kubeconfig that the daemon has written.
func (h *Host) Kubectl(args ...string) (string, error) {
	cmd := exec.Command("kubectl", append([]string{"--kubeconfig", h.kubeconfig(), "--cache-dir", filepath.Join(h.lab.dir, "kubectl")}, args...)...)
	var out []byte
	err := h.ns.do(func() (err error) {
		out, err = cmd.CombinedOutput()
		return err
	})
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// kubeconfig is the one that the daemon has written: the administrator's on masters, else the kubelet's.
func (h *Host) kubeconfig() string {
	config := filepath.Join(h.dir, "admin.kubeconfig")
	if _, err := os.Stat(config); errors.Is(err, fs.ErrNotExist) {
		return filepath.Join(h.dir, "kubelet.kubeconfig")
	}
	return config
}

// Get returns the body that a web server answers to this host.
func (h *Host) Get(ctx context.Context, url string) (string, error) {
	tr := &http.Transport{DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	tr.DialContext = h.dial
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	var b bytes.Buffer
	_, err = b.ReadFrom(resp.Body)
	return strings.TrimSpace(b.String()), err
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 64 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buf = append(t.buf, p...); len(t.buf) > 2*tailSize {
		t.buf = append([]byte(nil), t.buf[len(t.buf)-tailSize:]...)
	}
	return len(p), nil
}

// String is what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

const dialTimeout = 2 * time.Second

// cgroupDirs are the host's cgroup and all below it.
func (h *Host) cgroupDirs() (out []string) {
	roots, err := filepath.Glob("/sys/fs/cgroup/pids" + h.cgroup())
	if err != nil || len(roots) == 0 { // version 2
		roots = []string{"/sys/fs/cgroup" + h.cgroup()}
	}
	for _, root := range roots {
		filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error { //nolint:errcheck // what is gone does not count
			if err == nil && e.IsDir() {
				out = append(out, path)
			}
			return nil
		})
	}
	return out
}

// Containers counts the cgroups of the host's pods that have a process.
func (h *Host) Containers() int {
	n := 0
	for _, dir := range h.cgroupDirs() {
		if b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs")); err == nil && len(b) > 0 {
			n++
		}
	}
	return n
}
