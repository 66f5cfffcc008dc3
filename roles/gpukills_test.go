package roles_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/gpu/plan"
	"minik8s/internal/slurm/slurmtest"
)

// TestGpuJobsKilledAtRandom kills the daemon, the connection and what submits on the login node, at random moments, while jobs come and
// go: none is lost, none runs twice. `make gpu-kills` runs it, with KILLS and, to do an earlier run again, SEED.
func TestGpuJobsKilledAtRandom(t *testing.T) {
	kills, err := strconv.Atoi(os.Getenv("KILLS"))
	if err != nil {
		t.Skip("it takes long: `make gpu-kills` runs it")
	}
	seed, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("SEED=%d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	x := newCentre(t, slurmtest.Options{MinJobAge: 100_000})
	x.slurm.Before("sbatch", "sleep 0.$(($$ % 5))")
	x.slurm.After("sbatch", "sleep 0.$(($$ % 4))")
	faults := []struct {
		name string
		do   func()
	}{
		{"the daemon", func() { x.kill(); x.c = x.up() }},
		{"the connection", x.slurm.Cut},
		{"what submits", func() { x.slurm.Root("pkill -9 -f start.sh; true") }},
		{"the login node's sshd", func() {
			x.slurm.Stop("sshd")
			x.slurm.Cut()
			x.slurm.Begin("sshd")
		}},
	}
	var jobs, open []string
	await := func(most int) {
		x.eventually("jobs end", func() bool {
			left := open[:0:0]
			for _, name := range open {
				if j := x.job(name); j.Name == "" || !plan.Ended(&j.Status) {
					left = append(left, name)
				}
			}
			open = left
			return len(open) <= most
		})
	}
	for i := range kills {
		name := fmt.Sprintf("job-%d", i)
		x.submit(name, minik8s.GpuJobSpec{CompileScripts: []string{"sleep 0.2"}, RunScripts: []string{"echo run >>ran", fmt.Sprintf("sleep 0.%d", chance.IntN(10))}, Cleanup: minik8s.CleanupNever})
		jobs, open = append(jobs, name), append(open, name)
		pause(time.Duration(chance.IntN(1500)) * time.Millisecond)
		fault := faults[chance.IntN(len(faults))]
		fault.do()
		if i%50 == 49 {
			t.Logf("%d kills, the last was of %s; %d jobs are under way", i+1, fault.name, len(open))
		}
		await(20)
	}
	await(0)
	counts := map[string]int{}
	for line := range strings.Lines(x.slurm.Do("squeue -h -t all -o %j")) {
		name, _, _ := strings.Cut(line, ".")
		counts[name]++
	}
	ran := map[string]int{}
	for line := range strings.Lines(x.slurm.Do("grep -c run .minik8s/*/jobs/*/files/ran")) {
		path, n, _ := strings.Cut(strings.TrimSpace(line), ":")
		_, name, _ := strings.Cut(path, "/jobs/")
		name, _, _ = strings.Cut(name, ".")
		ran[name], _ = strconv.Atoi(n)
	}
	for _, name := range jobs {
		if s := x.job(name).Status; s.State != "COMPLETED" || counts[name] != 1 || ran[name] != 1 {
			t.Errorf("%s is %s, Slurm has it %d times, it ran %d times", name, s.State, counts[name], ran[name])
		}
	}
}
