package containerd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	ctrd "github.com/containerd/containerd"
	"github.com/containerd/containerd/cio"
	"github.com/containerd/containerd/oci"
)

// BenchmarkFigures measures what a pod's time is made of, once:
//
//	go test -run '^$' -bench Figures -benchtime 1x ./internal/kubelet/containerd
func BenchmarkFigures(t *testing.B) {
	b := newBench(t)
	cpu := b.cpuMeter()
	var sandbox, create, start, stop, remove, total, gone []time.Duration
	for i := range 25 {
		name := fmt.Sprintf("p%d", i)
		b.rest()
		t0 := time.Now()
		if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig(name)); err != nil {
			t.Fatal(err)
		}
		t1 := time.Now()
		id, err := b.CreateContainer(b.ctx, b.containerConfig(name, "c", "sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"))
		if err != nil {
			t.Fatal(err)
		}
		t2 := time.Now()
		if err := b.StartContainer(b.ctx, id); err != nil {
			t.Fatal(err)
		}
		t3 := time.Now()
		time.Sleep(30 * time.Millisecond) // lets the shell set its trap; not part of any figure
		t4 := time.Now()
		if err := b.StopContainer(b.ctx, id, 5*time.Second); err != nil {
			t.Fatal(err)
		}
		t5 := time.Now()
		if err := b.RemoveContainer(b.ctx, id); err != nil {
			t.Fatal(err)
		}
		if err := b.RemoveSandbox(b.ctx, "uid-"+name); err != nil {
			t.Fatal(err)
		}
		t6 := time.Now()
		sandbox, create, start = append(sandbox, t1.Sub(t0)), append(create, t2.Sub(t1)), append(start, t3.Sub(t2))
		total, stop, remove = append(total, t3.Sub(t0)), append(stop, t5.Sub(t4)), append(remove, t6.Sub(t5))
		gone = append(gone, t6.Sub(t4))
	}
	var bare []time.Duration
	for i := range 15 {
		bare = append(bare, b.bare(fmt.Sprintf("bare-%d", i)))
	}
	for _, f := range []struct {
		name string
		list []time.Duration
	}{{"bare", bare}, {"sandbox", sandbox}, {"create", create}, {"start", start}, {"all to Running", total}, {"stop", stop}, {"remove", remove}, {"stop+remove", gone}} {
		slices.Sort(f.list)
		fmt.Printf("%-15s min %8s p50 %8s  p90 %8s max %8s\n", f.name, round(f.list[0]), round(f.list[len(f.list)/2]), round(f.list[len(f.list)*9/10]), round(f.list[len(f.list)-1]))
	}
	for _, n := range []int{50, 100} {
		t0 := cpu()
		up, down := b.parallel(n, func() { fmt.Printf("CPU to Running: %s each\n", round((cpu()-t0)/time.Duration(n))); t0 = cpu() })
		fmt.Printf("%d at once: all Running %s, all gone %s\n", n, round(up), round(down))
		b.rest()
		fmt.Printf("CPU to gone: %s each\n", round((cpu()-t0)/time.Duration(n)))
	}
}

// cpuMeter returns the CPU time that this process, the keepers and the containers have used: on a busy machine it is
// more reliable than the clock.
func (b *bench) cpuMeter() func() time.Duration {
	self := filepath.Join("/sys/fs/cgroup/cpuacct", b.cfg.CgroupRoot+"-self")
	if err := os.Mkdir(self, 0o755); err != nil {
		return func() time.Duration { return 0 }
	}
	if err := os.WriteFile(filepath.Join(self, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := os.WriteFile("/sys/fs/cgroup/cpuacct/cgroup.procs", []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
			b.t.Error(err)
		}
	})
	used := func(cgroup string) (d time.Duration) {
		if data, err := os.ReadFile(filepath.Join(cgroup, "cpuacct.usage")); err == nil {
			fmt.Sscan(string(data), (*int64)(&d))
		}
		return d
	}
	return func() time.Duration {
		return used(self) + used(filepath.Join("/sys/fs/cgroup/cpuacct", b.cfg.CgroupRoot))
	}
}

// bare is how long containerd needs for a container alone, in this process and by its own client: a snapshot, create and
// start. No pod, no network, no log.
func (b *bench) bare(id string) time.Duration {
	t0 := time.Now()
	c, task := b.startBare(id)
	took := time.Since(t0)
	ctx := b.ns(b.ctx)
	if _, err := task.Delete(ctx, ctrd.WithProcessKill); err != nil {
		b.t.Error(err)
	}
	if err := c.Delete(ctx, ctrd.WithSnapshotCleanup); err != nil {
		b.t.Error(err)
	}
	return took
}

// startBare starts a container as another user of containerd's socket would.
func (b *bench) startBare(id string) (ctrd.Container, ctrd.Task) {
	b.t.Helper()
	ctx := b.ns(b.ctx)
	img, err := b.client.GetImage(ctx, "docker.io/library/busybox:latest")
	if err != nil {
		b.t.Fatal(err)
	}
	c, err := b.client.NewContainer(ctx, id, ctrd.WithSnapshotter(b.containerd.Snapshotter), ctrd.WithNewSnapshot(id, img),
		ctrd.WithNewSpec(oci.WithImageConfig(img), oci.WithProcessArgs("sleep", "1000"), oci.WithCgroup(b.cfg.CgroupRoot+"/"+id)))
	if err != nil {
		b.t.Fatal(err)
	}
	task, err := c.NewTask(ctx, cio.NullIO)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := task.Start(ctx); err != nil {
		b.t.Fatal(err)
	}
	return c, task
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// rest waits until the sandboxes made ahead are there.
func (b *bench) rest() {
	eventually(b.t, "a sandbox made ahead", func() error {
		if n := b.sandboxes.Waiting(); n < b.Runtime.cfg.Warm {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
}

func (b *bench) parallel(n int, between func()) (up, down time.Duration) {
	ids := make([]string, n)
	var wg sync.WaitGroup
	each := func(f func(i int, name string) error) time.Duration {
		t0 := time.Now()
		for i := range n {
			wg.Go(func() {
				if err := f(i, fmt.Sprintf("q%d-%d", n, i)); err != nil {
					b.t.Error(err)
				}
			})
		}
		wg.Wait()
		return time.Since(t0)
	}
	up = each(func(i int, name string) error {
		if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig(name)); err != nil {
			return err
		}
		id, err := b.CreateContainer(b.ctx, b.containerConfig(name, "c", "sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"))
		if err != nil {
			return err
		}
		ids[i] = id
		return b.StartContainer(b.ctx, id)
	})
	between()
	time.Sleep(100 * time.Millisecond)
	down = each(func(i int, name string) error {
		if err := b.StopContainer(b.ctx, ids[i], 5*time.Second); err != nil {
			return err
		}
		if err := b.RemoveContainer(b.ctx, ids[i]); err != nil {
			return err
		}
		return b.RemoveSandbox(b.ctx, "uid-"+name)
	})
	return up, down
}
