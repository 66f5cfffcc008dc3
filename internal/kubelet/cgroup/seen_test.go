package cgroup

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"minik8s/internal/kubelet/cri"
)

// files are the files of a cgroup in a directory.
type files map[string]string

func (f files) write(t *testing.T, dir string) {
	t.Helper()
	for name, text := range f {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Of a cgroup that uses no CPU only the counter of CPU time is read, but what it had is read again after a while; and what
// uses CPU is read each time. It is the same with both versions.
func TestIdleCgroups(t *testing.T) {
	for version, x := range map[string]struct {
		v2          bool
		cpu, memory string
		before      files
		used, more  string // what the file cpu says after CPU was used
	}{
		"v1": {cpu: "cpuacct/p/cpuacct.usage", memory: "memory/p/memory.usage_in_bytes", used: "200\n", more: "300\n",
			before: files{"cpuacct/p/cpuacct.usage": "100\n", "cpuacct/p/cpuacct.stat": "user 3\nsystem 1\n",
				"memory/p/memory.usage_in_bytes": "5000\n", "memory/p/memory.stat": "total_rss 100\ntotal_inactive_file 1000\n"}},
		"v2": {v2: true, cpu: "p/cpu.stat", memory: "p/memory.current", used: "usage_usec 2\nnr_periods 7\n", more: "usage_usec 3\nnr_periods 8\n",
			before: files{"p/cpu.stat": "usage_usec 1\nuser_usec 1\nnr_periods 6\n", "p/memory.current": "5000\n", "p/memory.stat": "anon 100\ninactive_file 1000\n"}},
	} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				root := t.TempDir()
				x.before.write(t, root)
				r := NewReader(root, x.v2)
				expect := func(what string, memory, workingSet uint64) cri.Usage {
					t.Helper()
					var u cri.Usage
					if !r.ReadCore("/p", &u) || u.Memory != memory || u.WorkingSet != workingSet || u.RSS != 100 || u.UserCPU == 0 && !x.v2 {
						t.Errorf("%s: %+v", what, u)
					}
					return u
				}
				expect("at first", 5000, 4000)
				files{x.memory: "7000\n"}.write(t, root)
				expect("it has done nothing", 5000, 4000)
				files{x.cpu: x.used}.write(t, root)
				if u := expect("it has done something", 7000, 6000); x.v2 && u.Periods != 7 {
					t.Errorf("periods of v2: %d", u.Periods)
				}
				files{x.memory: "3000\n"}.write(t, root)
				time.Sleep(stale - time.Second)
				expect("the kernel has taken pages from an idle one", 7000, 6000)
				time.Sleep(time.Second)
				expect("after a while", 3000, 2000)
				files{x.memory: "9000\n"}.write(t, root)
				var u cri.Usage
				if !r.Read("/p", &u) || u.Memory != 9000 {
					t.Errorf("who reads the rest reads all: %+v", u)
				}
				expect("which nobody forgets", 9000, 8000)
				if err := os.Remove(filepath.Join(root, x.cpu)); err != nil {
					t.Fatal(err)
				}
				if r.ReadCore("/p", &u) || len(r.seen.of) != 0 {
					t.Error("it is gone")
				}
				files{x.cpu: x.more}.write(t, root)
				expect("another of that name", 9000, 8000)
				time.Sleep(unread)
				for name, text := range x.before {
					files{filepath.Join(filepath.Dir(filepath.Dir(name)), "q", filepath.Base(name)): text}.write(t, root)
				}
				if !r.ReadCore("/q", &u) || len(r.seen.of) != 1 {
					t.Errorf("of %d cgroups is known what they used", len(r.seen.of))
				}
			})
		})
	}
}
