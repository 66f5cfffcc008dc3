package slurmtest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"minik8s/internal/machine"
)

func TestMain(m *testing.M) { machine.Run(m.Run) }

func TestJobs(t *testing.T) {
	t.Parallel()
	began := time.Now()
	c := Start(t, Options{})
	t.Logf("it started in %v", time.Since(began))
	out := c.Do(`cat >j.sh <<'E'
#!/bin/bash -l
module load cuda/10 gcc
echo "user=$(id -un) uid=$(id -u) cards=$SLURM_JOB_GPUS $CUDA_VISIBLE_DEVICES loaded=$LOADED"
module load missing/1 || echo "refused"
E
sbatch --wait --gres=gpu:2 --output=out j.sh; cat out`)
	if !strings.Contains(out, fmt.Sprintf("user=hpc uid=%d cards=0,1 0,1 loaded=cuda/10:gcc\nmodule: missing/1 is unknown\nrefused", uid)) {
		t.Error(out)
	}
	if n := c.Calls("sbatch"); n != 1 {
		t.Errorf("sbatch was called once, and counted %d times", n)
	}
	c.Before("sbatch", "echo 'sbatch: error: full' >&2; exit 1")
	if out := c.Do("sbatch j.sh"); out != "sbatch: error: full (exit status 1)" {
		t.Error(out)
	}
	c.Before("sbatch", "")
	c.After("sbatch", "echo after $code; code=9")
	if out := c.Do("sbatch --partition=nowhere j.sh 2>/dev/null"); out != "after 1 (exit status 9)" {
		t.Error(out)
	}
	c.After("sbatch", "")
	want := "FAILED JobLaunchFailure"
	if c.OutOfMemory {
		want = "OUT_OF_MEMORY OutOfMemory"
	}
	if out := c.Do(`sbatch --wait --mem=40M --wrap 'a=x; while :; do a=$a$a; done' >/dev/null; squeue -h -t all -j 2 -o '%T %r'`); out != want {
		t.Errorf("a job that takes more memory than it may is %q", out)
	}
	c.Stop("slurmctld")
	if out := c.Do("squeue -h"); !strings.Contains(out, "exit status 1") {
		t.Errorf("without a controller, squeue says %q", out)
	}
	c.Begin("slurmctld")
	if out := c.Do("squeue -h -t all -S i -o %i"); out != "1\n2" {
		t.Errorf("after a new start of the controller: %q", out)
	}
}

// TestLimits is about what Slurm notices late: a time limit and a node that is lost.
func TestLimits(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{Nodes: 3})
	c.Do(`sbatch -w n1 --gres=gpu:1 --wrap '[ ${SLURM_RESTART_COUNT:-0} != 0 ] || sleep 600'`)
	c.Do("sbatch -w n2 --no-requeue --wrap 'sleep 600'")
	c.Do("sbatch -w n3 --wrap 'sleep 600'")
	states := func() string { return strings.ReplaceAll(c.Do("squeue -h -t all -S i -o '%i %T'"), "\n", ", ") }
	eventually(t, "the jobs' processes run, and the cluster's own", func() (bool, string) {
		s := c.Root("pgrep -c sleep")
		return s == "4", s + " of four: " + states()
	})
	c.Stop("n1")
	c.Stop("n2")
	if n := c.Root("pgrep -c sleep"); n != "2" {
		t.Errorf("of the jobs' processes and the cluster's own %s are left, want 2", n)
	}
	c.Expire("3")
	began := time.Now()
	eventually(t, "the jobs have ended, and one waits for its node", func() (bool, string) {
		s := states()
		return s == "1 PENDING, 2 NODE_FAIL, 3 TIMEOUT", s
	})
	t.Logf("after %v", time.Since(began))
	c.Begin("n1")
	eventually(t, "it runs again, with the node back", func() (bool, string) {
		s := states()
		return s == "1 COMPLETED, 2 NODE_FAIL, 3 TIMEOUT", s
	})
}

func TestFullHome(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{HomeBytes: 1 << 20, ThisNetwork: true})
	if out := c.Do("head -c 2M /dev/zero >big"); !strings.Contains(out, "No space left on device") {
		t.Error(out)
	}
	if out := c.Do("rm big; ls -A .ssh"); out != "authorized_keys" {
		t.Errorf("the home has %q", out)
	}
	if got, err := os.ReadFile(c.dir + "/etc/shadow"); err != nil || strings.Contains(string(got), "root:") {
		t.Errorf("the machine's passwords are copied: %v", err)
	}
}
