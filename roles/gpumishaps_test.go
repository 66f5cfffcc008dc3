package roles_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/gpu/plan"
	"minik8s/internal/slurm/slurmtest"
)

// TestGpuJobsMishaps is about what a centre does to jobs: nodes fail, others come first, the controller and accounting are away or
// slow, the disk is full.
func TestGpuJobsMishaps(t *testing.T) {
	x := newCentre(t, slurmtest.Options{Accounting: true, MinJobAge: 4, HomeBytes: 16 << 20})
	never := false
	// One that is told to end and ends well has not done its work.
	x.submit("low", minik8s.GpuJobSpec{Nodes: 2, Sbatch: []string{"--exclusive"}, Requeue: &never,
		RunScripts: []string{"trap 'exit 0' TERM", "while :; do sleep 0.1; done"}})
	x.state("low", "RUNNING")
	x.submit("high", minik8s.GpuJobSpec{Partition: "dgx2", Nodes: 2, Sbatch: []string{"--exclusive"}, RunScripts: []string{"true"}})
	if s := x.state("low", "PREEMPTED").Status; !apimeta.IsStatusConditionTrue(s.Conditions, minik8s.GpuJobFailed) {
		t.Errorf("low: %+v", s)
	}
	x.state("high", "COMPLETED")
	x.submit("fallen", minik8s.GpuJobSpec{Requeue: &never, RunScripts: []string{"sleep 600"}})
	node := x.state("fallen", "RUNNING").Status.NodeList
	x.slurm.Root("scontrol update nodename=" + node + " state=down reason=test")
	x.state("fallen", "NODE_FAIL")
	x.slurm.Root("scontrol update nodename=" + node + " state=resume")

	// While the controller does not answer, marks still tell; what happened meanwhile is found out from accounting, which is slow.
	x.submit("meanwhile", minik8s.GpuJobSpec{RunScripts: []string{"sleep 600"}})
	id := x.state("meanwhile", "RUNNING").Status.JobID
	x.slurm.Before("sacct", "sleep 3")
	x.slurm.Before("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
	answers := func() bool {
		c, err := client.Get[*minik8s.SlurmCluster](context.Background(), x.c, client.Key{Kind: api.SlurmClusters, Namespace: "default", Name: "centre"})
		if err != nil {
			t.Fatal(err)
		}
		silent := apimeta.FindStatusCondition(c.Status.Conditions, minik8s.SlurmAnswers)
		if silent != nil && (!strings.Contains(silent.Message, "Unable to contact") || !apimeta.IsStatusConditionTrue(c.Status.Conditions, minik8s.SlurmConnected)) {
			t.Errorf("%+v", c.Status.Conditions)
		}
		return silent == nil
	}
	x.eventually("it says that Slurm does not answer", func() bool { return !answers() })
	x.submit("marked", minik8s.GpuJobSpec{RunScripts: []string{"true"}})
	x.state("marked", "COMPLETED")
	x.slurm.Root("scancel --signal=KILL --full " + id)
	x.eventually("Slurm has forgotten the job", func() bool { return strings.Contains(x.slurm.Root("scontrol show job "+id), "Invalid job id") })
	x.slurm.Before("squeue", "")
	if s := x.state("meanwhile", "CANCELLED").Status; s.Signal == nil || s.Reason != "" {
		t.Errorf("meanwhile: %+v", s)
	}
	x.eventually("Slurm answers again", answers)

	// A job fills the disk: it fails, others wait for room, and when it is deleted there is some.
	x.submit("filler", minik8s.GpuJobSpec{RunScripts: []string{"head -c 64M /dev/zero >big"}, Results: []string{"none"}})
	x.state("filler", "FAILED")
	x.submit("waiter", minik8s.GpuJobSpec{RunScripts: []string{"echo at last"}})
	x.eventually("the next says that there is no room", func() bool {
		c := apimeta.FindStatusCondition(x.job("waiter").Status.Conditions, minik8s.GpuJobSubmitted)
		return c != nil && strings.Contains(c.Message, "disk") || x.job("waiter").Status.JobID != ""
	})
	x.must(x.c.Delete(context.Background(), client.Key{Kind: api.GpuJobs, Namespace: "default", Name: "filler"}, nil))
	x.back("waiter")
	if got := x.read("waiter", "log"); got != "at last\n" {
		t.Errorf("waiter: %q", got)
	}
}

// An array whose first tasks have ended long ago does not go back when the daemon is killed: Slurm has forgotten them, and their
// marks are gone.
func TestArrayOutlivesTheDaemon(t *testing.T) {
	x := newCentre(t, slurmtest.Options{MinJobAge: 2})
	x.submit("array", minik8s.GpuJobSpec{Array: "0-3", RunScripts: []string{"[ $SLURM_ARRAY_TASK_ID -ge 2 ] || exit 0", "[ $SLURM_ARRAY_TASK_ID -lt 2 ] || sleep 600"}})
	done := func() int32 {
		if tasks := x.job("array").Status.Tasks; tasks != nil {
			return tasks.Succeeded
		}
		return -1
	}
	x.eventually("two tasks have ended", func() bool { return done() == 2 })
	x.eventually("Slurm has forgotten them", func() bool {
		return strings.Count(x.slurm.Do("squeue --noheader --states=all --array --format=%T"), "COMPLETED") == 0
	})
	x.kill()
	x.c = x.up()
	// Slurm is asked every five seconds: whatever the daemon says wrong it says by then.
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if n := done(); n != 2 && n != -1 {
			t.Fatalf("%d of 2 tasks have ended, says the daemon after its start", n)
		}
	}
	x.slurm.Do("scancel --name=$(squeue --noheader --format=%j | head -1)")
	x.eventually("the array has ended", func() bool { s := x.job("array").Status; return plan.Ended(&s) })
}

// Jobs that log in by Secrets of their own, as those of the seed system X do, have one connection together where those say the same, and Slurm is
// asked for all of them at once; also when the job and the Secret go by which that was done.
func TestGpuJobsWithLoginsOfTheirOwn(t *testing.T) {
	x := newCentre(t, slurmtest.Options{})
	const jobs = 8
	name := func(i int) string { return fmt.Sprintf("own-%d", i) }
	for i := range jobs {
		x.must(x.c.Create(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name(i)},
			StringData: map[string]string{"username": x.slurm.User, "password": x.slurm.Password}}, client.WriteOptions{}))
		x.submit(name(i), minik8s.GpuJobSpec{LoginSecret: name(i), RunScripts: []string{"while [ ! -e $HOME/end ]; do sleep 0.1; done", "echo ran >out"}, Results: []string{"out"}})
	}
	x.eventually("all are submitted", func() bool {
		for i := range jobs {
			if x.job(name(i)).Status.JobID == "" {
				return false
			}
		}
		return true
	})
	began, asked := time.Now(), x.slurm.Calls("squeue")
	connections := func() int { return strings.Count(x.slurm.Root("ps -eo args"), "sshd: "+x.slurm.User+" [priv]") }
	if n := connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
	for _, k := range []*api.Kind{api.GpuJobs, api.Secrets} {
		x.must(x.c.Delete(context.Background(), client.Key{Kind: k, Namespace: "default", Name: name(0)}, nil))
	}
	x.eventually("the first is gone", func() bool { return x.job(name(0)).Name == "" })
	x.slurm.Do("touch end")
	for i := 1; i < jobs; i++ {
		x.back(name(i))
		if got := x.read(name(i), "files/out"); got != "ran\n" {
			t.Errorf("%s: %q", name(i), got)
		}
	}
	// At most four times a minute, and once more at the beginning of each.
	if n, most := x.slurm.Calls("squeue")-asked, 2+int(time.Since(began)/(15*time.Second)); n > most {
		t.Errorf("squeue was called %d times in %s for %d jobs", n, time.Since(began), jobs)
	}
	if n := connections(); n != 1 {
		t.Errorf("%d connections at the end", n)
	}
}
