package cgroup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
)

// Manager makes the cgroups of pods under one root.
type Manager struct {
	root string // "/minik8s"

	once      sync.Once
	hierarchy hierarchy
	err       error

	mu sync.Mutex
	// shares are the cpu.shares of each burstable pod; their sum is the weight of their class.
	shares map[string]uint64
	ready  bool // the classes exist
}

// New makes a manager for the given root, a path like "/minik8s"; it touches nothing.
func New(root string) *Manager {
	return &Manager{root: path.Join("/", root), shares: map[string]uint64{}}
}

// At is New on cgroups mounted elsewhere, for tests: v1 has a directory per controller in dir, v2
// is dir itself.
func At(dir, root string, v2 bool) *Manager {
	m := New(root)
	m.once.Do(func() {
		if v2 {
			m.hierarchy = unified{dir}
			return
		}
		h := legacy{}
		for _, c := range limited {
			h[c] = filepath.Join(dir, c)
		}
		m.hierarchy = h
	})
	return m
}

// PodPath is the pod's cgroup, as CgroupParent of its containers.
func (m *Manager) PodPath(uid string, class corev1.PodQOSClass) string {
	return path.Join(m.classPath(class), "pod"+uid)
}

func (m *Manager) classPath(class corev1.PodQOSClass) string {
	switch class {
	case corev1.PodQOSBurstable:
		return path.Join(m.root, "burstable")
	case corev1.PodQOSBestEffort:
		return path.Join(m.root, "besteffort")
	default:
		return m.root
	}
}

var classes = []corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort}

// Hold locks the root until the closer is closed, or the process ends. A daemon kills unknown processes below its
// root, so it is an error (ErrHeld) if another process has the lock.
func (m *Manager) Hold() (io.Closer, error) {
	h, err := m.mounted()
	if err != nil {
		return nil, err
	}
	if err := m.ensureClasses(h); err != nil {
		return nil, err
	}
	f, err := os.Open(h.home(m.root))
	if err != nil {
		return nil, fmt.Errorf("cgroup %s: %w", m.root, err)
	}
	for end := time.Now().Add(holdPatience); syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil; time.Sleep(holdPause) {
		if time.Now().After(end) {
			f.Close()
			return nil, fmt.Errorf("cgroup %s: %w", m.root, ErrHeld)
		}
	}
	return f, nil
}

// The lock of a daemon that was killed as it started a program is there until that program begins.
const (
	holdPatience = 500 * time.Millisecond
	holdPause    = 10 * time.Millisecond
)

// ErrHeld says that another daemon's pods live below a root.
var ErrHeld = errors.New("another daemon's pods live below it; give each daemon its own with --cgroup-root")

// Ensure makes the pod's cgroup with the given settings and returns its path.
func (m *Manager) Ensure(uid string, class corev1.PodQOSClass, res cri.Resources) (string, error) {
	h, err := m.mounted()
	if err != nil {
		return "", err
	}
	if err := m.ensureClasses(h); err != nil {
		return "", err
	}
	at := m.PodPath(uid, class)
	if err := h.ensure(at, res); err != nil {
		return "", err
	}
	if class == corev1.PodQOSBurstable {
		err = m.weigh(h, uid, max(res.CPUShares, 2))
	}
	return at, err
}

// Note counts a pod whose cgroup exists already in the weight of its class; it writes nothing.
func (m *Manager) Note(uid string, class corev1.PodQOSClass, res cri.Resources) {
	if class != corev1.PodQOSBurstable {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shares[uid] = max(res.CPUShares, 2)
}

func (m *Manager) ensureClasses(h hierarchy) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready {
		return nil
	}
	for _, class := range classes {
		res := cri.Resources{}
		if class == corev1.PodQOSBestEffort {
			res.CPUShares = 2
		}
		if err := h.ensure(m.classPath(class), res); err != nil {
			return err
		}
	}
	// All pods together weigh less than the daemon's cgroup alone, whichever that is: pods that use all CPU time must
	// not slow the daemon down.
	if err := h.lower(m.root); err != nil {
		return err
	}
	m.ready = true
	return nil
}

// weigh stores the shares of a burstable pod, 0 if it is removed, and sets the weight of the class.
func (m *Manager) weigh(h hierarchy, uid string, shares uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shares[uid] == shares {
		return nil
	}
	if shares == 0 {
		delete(m.shares, uid)
	} else {
		m.shares[uid] = shares
	}
	sum := uint64(0)
	for _, s := range m.shares {
		sum += s
	}
	return h.ensure(m.classPath(corev1.PodQOSBurstable), cri.Resources{CPUShares: min(max(sum, 2), 262144)})
}

// Remove removes the pod's cgroup and all below it, in every class: what runs there is killed.
func (m *Manager) Remove(uid string) error {
	h, err := m.mounted()
	if err != nil {
		return err
	}
	var errs []error
	for _, class := range classes {
		for _, dir := range h.dirs(m.PodPath(uid, class)) {
			errs = append(errs, removeTree(dir))
		}
	}
	m.mu.Lock()
	_, weighed := m.shares[uid]
	m.mu.Unlock()
	if weighed {
		errs = append(errs, m.weigh(h, uid, 0))
	}
	return errors.Join(errs...)
}

// Pods lists the uids of the pods that have a cgroup.
func (m *Manager) Pods() ([]string, error) {
	h, err := m.mounted()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var out []string
	for _, class := range classes {
		for _, dir := range h.dirs(m.classPath(class)) {
			entries, err := os.ReadDir(dir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			for _, e := range entries {
				if uid, ok := strings.CutPrefix(e.Name(), "pod"); ok && e.IsDir() && !seen[uid] {
					seen[uid] = true
					out = append(out, uid)
				}
			}
		}
	}
	return out, nil
}

// RemoveRoot removes the classes and the root, once no pod is left in them.
func (m *Manager) RemoveRoot() error {
	h, err := m.mounted()
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready = false
	var errs []error
	for _, dir := range append(h.dirs(m.keepers()), h.dirs(m.root+"-shims")...) { // the latter of earlier versions
		errs = append(errs, removeSoon(dir))
	}
	for _, class := range []corev1.PodQOSClass{corev1.PodQOSBurstable, corev1.PodQOSBestEffort, corev1.PodQOSGuaranteed} {
		for _, dir := range h.dirs(m.classPath(class)) {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

func (m *Manager) mounted() (hierarchy, error) {
	m.once.Do(func() { m.hierarchy, m.err = findHierarchy() })
	return m.hierarchy, m.err
}

// removeTree removes a cgroup with those below it. The directory of a cgroup is removed by rmdir, without removing
// its files; it is busy until its processes have ended.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	err = rmdir(dir)
	if errors.Is(err, syscall.EBUSY) {
		killAll(dir)
		err = rmdir(dir) // if processes are still ending, the caller retries
	}
	return err
}

func rmdir(dir string) error {
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing cgroup %s: %w", dir, err)
	}
	return nil
}

// killAll kills every process in one cgroup.
func killAll(dir string) {
	if f, err := os.OpenFile(filepath.Join(dir, "cgroup.kill"), os.O_WRONLY, 0); err == nil { // v2
		_, err := f.WriteString("1")
		f.Close() //nolint:errcheck // the write's error is what counts
		if err == nil {
			return
		}
	}
	signalThose(syscall.SIGKILL, func() []int { return processes(dir) })
}

// processes are those in one cgroup.
func processes(dir string) (pids []int) {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	for _, f := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}
