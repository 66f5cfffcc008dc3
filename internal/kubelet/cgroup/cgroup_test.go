package cgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
)

func content(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// Two daemons do not share a root: each ends what it does not know.
func TestHold(t *testing.T) {
	for _, v2 := range []bool{false, true} {
		dir := t.TempDir()
		for _, name := range []string{"", "minik8s", "minik8s/burstable", "minik8s/besteffort", "another", "another/burstable", "another/besteffort"} {
			for file, text := range map[string]string{"cgroup.controllers": "cpu memory pids", "cgroup.subtree_control": "cpu memory pids", "cpu.weight": ""} {
				if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name, file), []byte(text), 0o644); v2 && err != nil {
					t.Fatal(err)
				}
			}
		}
		first, err := At(dir, "minik8s", v2).Hold()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := At(dir, "minik8s", v2).Hold(); !errors.Is(err, ErrHeld) {
			t.Errorf("v2 %v: held twice: %v", v2, err)
		}
		if other, err := At(dir, "another", v2).Hold(); err != nil {
			t.Errorf("v2 %v: another root: %v", v2, err)
		} else {
			other.Close()
		}
		first.Close()
		if again, err := At(dir, "minik8s", v2).Hold(); err != nil {
			t.Errorf("v2 %v: when it is free again: %v", v2, err)
		} else {
			again.Close()
		}
	}
}

func TestLegacySettings(t *testing.T) {
	dir := t.TempDir()
	m := At(dir, "minik8s", false)
	// What a kernel that counts swap would make.
	swap := filepath.Join(dir, "memory/minik8s/burstable/podu1")
	if err := errors.Join(os.MkdirAll(swap, 0o755), os.WriteFile(filepath.Join(swap, "memory.memsw.limit_in_bytes"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	res := cri.Resources{CPUShares: 512, CPUQuota: 50000, CPUPeriod: 100000, MemoryLimit: 1 << 20}
	at, err := m.Ensure("u1", corev1.PodQOSBurstable, res)
	if err != nil || at != "/minik8s/burstable/podu1" {
		t.Fatal(at, err)
	}
	for file, want := range map[string]string{
		"cpu/minik8s/burstable/podu1/cpu.shares":                     "512",
		"cpu/minik8s/burstable/podu1/cpu.cfs_quota_us":               "50000",
		"memory/minik8s/burstable/podu1/memory.limit_in_bytes":       "1048576",
		"cpu/minik8s/burstable/cpu.shares":                           "512",
		"cpu/minik8s/cpu.shares":                                     "512",
		"memory/minik8s/burstable/podu1/memory.memsw.limit_in_bytes": "1048576",
		"cpu/minik8s/besteffort/cpu.shares":                          "2",
	} {
		if got := content(t, filepath.Join(dir, file)); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
	if _, err := m.Ensure("u2", corev1.PodQOSBurstable, cri.Resources{CPUShares: 100}); err != nil {
		t.Fatal(err)
	}
	if got := content(t, filepath.Join(dir, "cpu/minik8s/burstable/cpu.shares")); got != "612" {
		t.Errorf("the class weighs %s", got)
	}
	uids, err := m.Pods()
	if err != nil || len(uids) != 2 {
		t.Errorf("%v, %v", uids, err)
	}
}

// A keeper weighs no more than the pods do, and is not among them.
func TestAddKeeper(t *testing.T) {
	for v2, file := range map[bool]string{false: "cpu/minik8s-keepers/cpu.shares", true: "minik8s-keepers/cpu.weight"} {
		dir := t.TempDir()
		want := "512"
		for _, controller := range limited {
			if err := os.Mkdir(filepath.Join(dir, controller), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if v2 {
			want = "50"
			if err := errors.Join(os.Mkdir(filepath.Join(dir, "minik8s-keepers"), 0o755), os.WriteFile(filepath.Join(dir, file), []byte("100"), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if err := At(dir, "minik8s", v2).AddKeeper(7); err != nil {
			t.Fatal(err)
		}
		if got := content(t, filepath.Join(dir, file)); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
		if got := content(t, filepath.Join(dir, filepath.Dir(file), "cgroup.procs")); got != "7" {
			t.Errorf("%s: the process %q, want 7", file, got)
		}
	}
}

func TestUnifiedSettings(t *testing.T) {
	dir := t.TempDir()
	// What the kernel would make.
	for _, d := range []string{"", "minik8s", "minik8s/podu1", "minik8s/burstable", "minik8s/besteffort"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"cgroup.controllers": "cpu memory pids hugetlb", "cgroup.subtree_control": "cpu", "memory.swap.max": "max", "cpu.weight": "100"} {
			if err := os.WriteFile(filepath.Join(dir, d, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	m := At(dir, "/minik8s", true)
	res := cri.Resources{CPUShares: 1024, CPUQuota: 200000, CPUPeriod: 100000, MemoryLimit: 1 << 20, PidsLimit: 7}
	if at, err := m.Ensure("u1", corev1.PodQOSGuaranteed, res); err != nil || at != "/minik8s/podu1" {
		t.Fatal(at, err)
	}
	for file, want := range map[string]string{
		"podu1/cpu.weight": "39", "podu1/cpu.max": "200000 100000", "podu1/memory.max": "1048576", "podu1/pids.max": "7",
		"podu1/memory.swap.max": "0", "cpu.weight": "50",
	} {
		if got := content(t, filepath.Join(dir, "minik8s", file)); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}

func TestControllersAreHandedOn(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"cgroup.controllers": "cpu memory pids hugetlb", "cgroup.subtree_control": "cpu"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := enable(dir); err != nil {
		t.Fatal(err)
	}
	if got := content(t, filepath.Join(dir, "cgroup.subtree_control")); got != "+memory +pids" {
		t.Errorf("%q", got)
	}
}

func TestParseMounts(t *testing.T) {
	v1 := "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	v2 := "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:1 - cgroup2 cgroup2 rw\n"
	h, err := parseMounts(v1 + v2)
	if err != nil {
		t.Fatal(err)
	}
	if l, ok := h.(legacy); !ok || l["cpu"] != "/sys/fs/cgroup/cpu,cpuacct" || l["memory"] != "/sys/fs/cgroup/memory" || len(h.dirs("/x")) != 3 {
		t.Errorf("%+v", h)
	}
	if h, err = parseMounts(v2); err != nil || h.(unified).mount != "/sys/fs/cgroup/unified" {
		t.Errorf("%+v, %v", h, err)
	}
	if _, err = parseMounts(""); err == nil {
		t.Error("no error without cgroups")
	}
}

// TestRealCgroups makes a pod's cgroup in the kernel, with a process in it.
func TestRealCgroups(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("cgroups need root")
	}
	m := New(fmt.Sprintf("/minik8s-cgroup-test-%d", os.Getpid()))
	t.Cleanup(func() {
		_ = m.Remove("u1")
		if err := m.RemoveRoot(); err != nil {
			t.Error(err)
		}
	})
	res := cri.Resources{CPUShares: 512, CPUQuota: 50000, CPUPeriod: 100000, MemoryLimit: 64 << 20, PidsLimit: 100}
	for range 2 {
		if _, err := m.Ensure("u1", corev1.PodQOSBurstable, res); err != nil {
			t.Skipf("cgroups cannot be made here: %v", err)
		}
	}
	h, err := m.mounted()
	if err != nil {
		t.Fatal(err)
	}
	sleep := exec.Command("sleep", "1000")
	if err := sleep.Start(); err != nil {
		t.Skip(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- sleep.Wait() }()
	defer sleep.Process.Kill()
	for _, dir := range h.dirs(m.PodPath("u1", corev1.PodQOSBurstable)) {
		inner := filepath.Join(dir, "container")
		if os.MkdirAll(inner, 0o755) == nil {
			_ = os.WriteFile(filepath.Join(inner, "cgroup.procs"), []byte(fmt.Sprint(sleep.Process.Pid)), 0o644)
		}
	}
	if err = m.Remove("u1"); err != nil { // a process that is killed leaves its cgroup a moment later
		<-ended
		err = m.Remove("u1")
	}
	if err != nil {
		t.Error(err)
	}
	if uids, err := m.Pods(); err != nil || len(uids) > 0 {
		t.Errorf("%v, %v", uids, err)
	}
}
