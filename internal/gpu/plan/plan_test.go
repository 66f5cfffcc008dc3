package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/slurm/batch"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }

func fresh() *minik8s.GpuJob {
	return &minik8s.GpuJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "j"}, Spec: minik8s.GpuJobSpec{RunScripts: []string{"true"}}}
}

func news() *News { return &News{Tasks: map[string]Task{}} }

func submittedMark() batch.Mark { return batch.Mark{Kind: "submitted", Job: "7"} }

func ran(start int, restarts int32) batch.Mark {
	return batch.Mark{Kind: "run", Job: "7", Nodes: "n1", Start: at(start), Restarts: restarts}
}

func ended(start, end int, exit, restarts int32) batch.Mark {
	return batch.Mark{Kind: "end", Job: "7", Nodes: "n1", Start: at(start), End: at(end), Exit: exit, Restarts: restarts}
}

// told is an end with code 0 after Slurm's TERM.
func told(start, end int) batch.Mark {
	m := ended(start, end, 0, 0)
	m.Signalled = true
	return m
}

func seen(state, reason string) batch.Seen {
	return batch.Seen{ID: "7", State: state, Reason: reason, NodeList: "n1"}
}

// TestFold tells a job's story step by step: each step is what becomes known at one time.
func TestFold(t *testing.T) {
	marks := func(m ...batch.Mark) *News { n := news(); n.Marks = m; return n }
	slurm := func(s ...batch.Seen) *News { n := news(); n.Seen = s; return n }
	gone := func(s ...batch.Seen) *News { n := slurm(s...); n.Vanished = true; return n }
	cases := []struct {
		name  string
		steps []*News
		want  []string // STATE REASON after each step
		exit  int32    // at the end; -1: none
		tries int32
	}{
		{"well", []*News{marks(submittedMark()), slurm(seen("PENDING", "Resources")), marks(ran(1, 0)), marks(ended(1, 9, 0, 0))},
			[]string{"PENDING", "PENDING Resources", "RUNNING", "COMPLETED"}, 0, 0},
		{"all at once", []*News{marks(ended(1, 2, 0, 0), ran(1, 0), submittedMark())}, []string{"COMPLETED"}, 0, 0},
		{"badly", []*News{marks(submittedMark(), ran(1, 0)), marks(ended(1, 2, 3, 0)), slurm(seen("COMPLETING", "")), slurm(seen("FAILED", "NonZeroExitCode"))},
			[]string{"RUNNING", "COMPLETING", "COMPLETING", "FAILED NonZeroExitCode"}, 3, 0},
		{"late", []*News{marks(submittedMark(), ran(1, 0)), slurm(seen("TIMEOUT", "TimeLimit"))}, []string{"RUNNING", "TIMEOUT TimeLimit"}, -1, 0},
		{"out of memory", []*News{marks(ran(1, 0)), marks(ended(1, 2, 137, 0)), slurm(seen("OUT_OF_MEMORY", "OutOfMemory"))},
			[]string{"RUNNING", "COMPLETING", "OUT_OF_MEMORY OutOfMemory"}, 137, 0},
		{"cancelled while it waits", []*News{marks(submittedMark()), slurm(seen("CANCELLED", ""))}, []string{"PENDING", "CANCELLED"}, -1, 0},
		{"a node fails and it is queued again", []*News{marks(ran(1, 0)), slurm(seen("PENDING", "BeginTime")), marks(ran(60, 1)), marks(ended(60, 70, 0, 1))},
			[]string{"RUNNING", "PENDING BeginTime", "RUNNING", "COMPLETED"}, 0, 1},
		{"preempted: it says its end, and is queued again", []*News{marks(ran(1, 0)), marks(ended(1, 5, 143, 0)), slurm(seen("PENDING", "BeginTime")), marks(ran(60, 1)), marks(ended(60, 61, 0, 1))},
			[]string{"RUNNING", "COMPLETING", "PENDING BeginTime", "RUNNING", "COMPLETED"}, 0, 1},
		{"told to end it ends well, and is queued again", []*News{marks(ran(1, 0)), marks(told(1, 5)), slurm(seen("PENDING", "BeginTime")), marks(ran(60, 1)), marks(ended(60, 61, 0, 1))},
			[]string{"RUNNING", "COMPLETING", "PENDING BeginTime", "RUNNING", "COMPLETED"}, 0, 1},
		{"told to end it ends well, at its time limit", []*News{marks(ran(1, 0)), marks(told(1, 5)), slurm(seen("TIMEOUT", "TimeLimit"))}, []string{"RUNNING", "COMPLETING", "TIMEOUT TimeLimit"}, 0, 0},
		{"told to end it ends well, and that was all", []*News{marks(told(1, 5)), slurm(seen("COMPLETED", ""))}, []string{"COMPLETING", "COMPLETED"}, 0, 0},
		{"told to end it ends well, and nobody knows more", []*News{marks(told(1, 5)), gone()}, []string{"COMPLETING", "COMPLETED"}, 0, 0},
		{"the end of an earlier try is read late", []*News{marks(ran(60, 1)), marks(ended(1, 5, 143, 0))}, []string{"RUNNING", "RUNNING"}, -1, 1},
		{"queued anew, and only the marks tell", []*News{marks(ran(1, 0)), marks(ran(60, 1)), marks(ended(60, 61, 0, 1))}, []string{"RUNNING", "RUNNING", "COMPLETED"}, 0, 1},
		{"a node fails for good", []*News{marks(ran(1, 0)), slurm(seen("NODE_FAIL", "NodeDown"))}, []string{"RUNNING", "NODE_FAIL NodeDown"}, -1, 0},
		{"squeue is late", []*News{marks(ran(1, 0), ended(1, 2, 0, 0)), slurm(seen("RUNNING", ""))}, []string{"COMPLETED", "COMPLETED"}, 0, 0},
		{"lost, and it left word", []*News{marks(submittedMark()), gone(), marks(ended(1, 2, 0, 0))}, []string{"PENDING", "FAILED Vanished", "FAILED Vanished"}, -1, 0},
		{"lost, with its word", []*News{marks(submittedMark()), {Marks: []batch.Mark{ended(1, 2, 0, 0)}, Vanished: true, Tasks: map[string]Task{}}}, []string{"PENDING", "COMPLETED"}, 0, 0},
		{"lost, with a bad word", []*News{marks(submittedMark()), {Marks: []batch.Mark{ended(1, 2, 4, 0)}, Vanished: true, Tasks: map[string]Task{}}}, []string{"PENDING", "FAILED NonZeroExitCode"}, 4, 0},
		{"lost, and accounting knows", []*News{marks(submittedMark()), gone(batch.Seen{ID: "7", State: "TIMEOUT", Exit: 0, Signal: 15})}, []string{"PENDING", "TIMEOUT"}, -1, 0},
		{"cancelled, and accounting knows by whom", []*News{marks(submittedMark()), gone(batch.Seen{ID: "7", State: "CANCELLED", Reason: "by 1000"})}, []string{"PENDING", "CANCELLED"}, -1, 0},
		{"refused", []*News{marks(batch.Mark{Kind: "refused", Text: "Invalid partition"})}, []string{"FAILED Refused"}, -1, 0},
		{"uncompiled", []*News{marks(batch.Mark{Kind: "uncompiled", Exit: 2})}, []string{"FAILED CompileError"}, 2, 0},
		{"uncompiled in the job", []*News{marks(ran(1, 0)), marks(batch.Mark{Kind: "end", Job: "7", Start: at(1), End: at(2), Exit: 1, Compile: true}), slurm(seen("FAILED", "NonZeroExitCode"))},
			[]string{"RUNNING", "COMPLETING", "FAILED CompileError"}, 1, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			j := fresh()
			for i, n := range c.steps {
				Fold(j, n, at(100+i))
				if got := strings.TrimSpace(j.Status.State + " " + j.Status.Reason); got != c.want[i] {
					t.Fatalf("step %d: %q, want %q", i, got, c.want[i])
				}
				once := j.DeepCopy()
				if Fold(j, n, at(200+i)); !strings.Contains(c.name, "queued") && (once.Status.State != j.Status.State || once.Status.Restarts != j.Status.Restarts) {
					t.Errorf("step %d: heard twice it is %s, heard once %s", i, j.Status.State, once.Status.State)
				} else {
					j = once
				}
			}
			if s := &j.Status; (s.ExitCode == nil) != (c.exit < 0) || s.ExitCode != nil && *s.ExitCode != c.exit {
				t.Errorf("exit code %v, want %d", s.ExitCode, c.exit)
			}
			if j.Status.Restarts != c.tries {
				t.Errorf("%d restarts, want %d", j.Status.Restarts, c.tries)
			}
			done := apimeta.IsStatusConditionTrue(j.Status.Conditions, minik8s.GpuJobComplete)
			failed := apimeta.FindStatusCondition(j.Status.Conditions, minik8s.GpuJobFailed)
			if over := Ended(&j.Status); done && failed != nil || over != (done || failed != nil) || over != (j.Status.EndTime != nil) {
				t.Errorf("%s: complete %v, failed %v, end %v", j.Status.State, done, failed, j.Status.EndTime)
			}
			if failed != nil && (failed.Message == "" || failed.Reason == "") {
				t.Errorf("it does not say why it failed: %+v", failed)
			}
		})
	}
}

func TestFoldArray(t *testing.T) {
	j := fresh()
	j.Spec.Array = "0-4%2"
	tasks := map[string]Task{}
	step := func(n *News, want minik8s.GpuJobTasks, state string) {
		t.Helper()
		n.Tasks = tasks
		Fold(j, n, at(1))
		if j.Status.Tasks == nil || *j.Status.Tasks != want || j.Status.State != state {
			t.Fatalf("%s %+v, want %s %+v", j.Status.State, j.Status.Tasks, state, want)
		}
	}
	task := func(id, state string) batch.Seen { return batch.Seen{ID: "7", Task: id, State: state} }
	end := func(id string, exit int32) batch.Mark {
		return batch.Mark{Kind: "end", Job: "7", Task: id, Start: at(1), End: at(2), Exit: exit}
	}
	step(&News{Marks: []batch.Mark{submittedMark()}}, minik8s.GpuJobTasks{Pending: 5}, "PENDING")
	step(&News{Seen: []batch.Seen{task("0", "RUNNING"), task("1", "RUNNING"), task("2-4%2", "PENDING")}}, minik8s.GpuJobTasks{Pending: 3, Running: 2}, "RUNNING")
	step(&News{Marks: []batch.Mark{end("0", 0), end("1", 3)}, Seen: []batch.Seen{task("0", "COMPLETED"), task("1", "FAILED"), task("2", "RUNNING"), task("3-4%2", "PENDING")}},
		minik8s.GpuJobTasks{Pending: 2, Running: 1, Succeeded: 1, Failed: 1}, "RUNNING")
	step(&News{Seen: []batch.Seen{task("2", "TIMEOUT"), task("3-4%2", "CANCELLED")}}, minik8s.GpuJobTasks{Succeeded: 1, Failed: 4}, "CANCELLED")
	if *j.Status.ExitCode != 3 {
		t.Errorf("exit code %d", *j.Status.ExitCode)
	}

	j = fresh()
	j.Spec.Array, tasks = "1,3", map[string]Task{}
	step(&News{Marks: []batch.Mark{end("1", 0)}}, minik8s.GpuJobTasks{Pending: 1, Succeeded: 1}, "RUNNING")
	step(&News{Marks: []batch.Mark{end("3", 0)}}, minik8s.GpuJobTasks{Succeeded: 2}, "COMPLETED")
}

// A task that failed or was told to end has not ended until Slurm says so: it may be queued again.
func TestFoldArrayQueuedAgain(t *testing.T) {
	j := fresh()
	j.Spec.Array = "0-1"
	end := func(id string, exit, restarts int32, signalled bool) batch.Mark {
		return batch.Mark{Kind: "end", Job: "7", Task: id, Start: at(1), End: at(2), Exit: exit, Restarts: restarts, Signalled: signalled}
	}
	n := &News{Tasks: map[string]Task{}}
	step := func(state string, doubtful bool, failed int32) {
		t.Helper()
		Fold(j, n, at(9))
		if j.Status.State != state || Doubtful(&j.Status, n) != doubtful || j.Status.Tasks.Failed != failed {
			t.Fatalf("%s, doubtful %v, %+v; want %s, %v, %d failed", j.Status.State, Doubtful(&j.Status, n), j.Status.Tasks, state, doubtful, failed)
		}
		n.Marks = nil
	}
	n.Hear(end("0", 0, 0, false), at(3))
	n.Hear(end("1", 143, 0, true), at(3))
	step("RUNNING", true, 0)
	n.See([]batch.Seen{{ID: "7", Task: "0", State: "COMPLETED"}, {ID: "7", Task: "1", State: "PENDING"}}, at(4))
	step("RUNNING", false, 0)
	n.Hear(end("1", 0, 1, true), at(6))
	step("RUNNING", true, 0)
	n.See([]batch.Seen{{ID: "7", Task: "1", State: "PENDING"}}, at(5)) // asked before
	step("RUNNING", true, 0)
	n.See([]batch.Seen{{ID: "7", Task: "1", State: "TIMEOUT"}}, at(7))
	step("TIMEOUT", false, 1)
}

// What squeue said before a mark is older than the mark, whichever is heard first.
func TestNewsInOrder(t *testing.T) {
	pending := []batch.Seen{seen("PENDING", "Resources")}
	for name, tell := range map[string]func(*News){
		"asked, answered, started":  func(n *News) { n.See(pending, at(1)); n.Hear(ran(2, 0), at(3)) },
		"asked, started, answered":  func(n *News) { n.Hear(ran(2, 0), at(3)); n.See(pending, at(1)) },
		"started, asked, answered":  func(n *News) { n.Hear(ran(2, 0), at(3)); n.See([]batch.Seen{seen("RUNNING", "")}, at(4)) },
		"the same mark once more":   func(n *News) { n.Hear(ran(2, 0), at(3)); n.Hear(ran(2, 0), at(5)); n.See(pending, at(2)) },
		"asked before, ended since": func(n *News) { n.Hear(ran(2, 0), at(3)); n.See([]batch.Seen{seen("RUNNING", "")}, at(2)) },
	} {
		j, n := fresh(), news()
		Fold(j, &News{Marks: []batch.Mark{submittedMark()}, Tasks: map[string]Task{}}, at(0))
		tell(n)
		if Fold(j, n, at(9)); j.Status.State != "RUNNING" || j.Status.StartTime == nil || j.Status.Restarts != 0 {
			t.Errorf("%s: %+v", name, j.Status)
		}
	}
}

// A job that cannot be followed says why, as long as that is so.
func TestTrouble(t *testing.T) {
	j, n := fresh(), news()
	n.Trouble = &Trouble{"ClusterMissing", "there is no SlurmCluster default/x"}
	if Fold(j, n, at(1)); !apimeta.IsStatusConditionFalse(j.Status.Conditions, minik8s.GpuJobFollowed) {
		t.Errorf("%+v", j.Status)
	}
	n.Trouble = nil
	if Fold(j, n, at(2)); len(j.Status.Conditions) != 0 {
		t.Errorf("%+v", j.Status)
	}
}

func TestWanted(t *testing.T) {
	all := []string{"j.out", "j.err", "j.compile.out", "j.out.1", "out/a", "out/deep/b", "other/a", "x.txt", "y.txt.gz", "[1]"}
	for _, c := range []struct {
		results []string
		array   string
		want    string
	}{
		{nil, "", "j.out j.err j.compile.out"},
		{nil, "0-3", "j.out j.err j.compile.out j.out.1"},
		{[]string{"out"}, "", "j.out j.err j.compile.out out/a out/deep/b"},
		{[]string{"./out/"}, "", "j.out j.err j.compile.out out/a out/deep/b"},
		{[]string{"*.txt", "o*/a"}, "", "j.out j.err j.compile.out out/a other/a x.txt"},
		{[]string{`\[1\]`}, "", "j.out j.err j.compile.out [1]"},
		{[]string{"."}, "", strings.Join(all, " ")},
		{[]string{"["}, "", "j.out j.err j.compile.out"},
	} {
		j := fresh()
		j.Spec.Results, j.Spec.Array = c.results, c.array
		got := Wanted(j, all)
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%q: %q, want %q", c.results, got, c.want)
		}
	}
}

// A pattern that nothing has may be a slip, and is told.
func TestUnmatched(t *testing.T) {
	j := &minik8s.GpuJob{ObjectMeta: metav1.ObjectMeta{Name: "j"}, Spec: minik8s.GpuJobSpec{Results: []string{"out.dat", "run*/", "*.csv", "deep/er", "nothing.*"}}}
	if got := Unmatched(j, []string{"run1/out.dat", "a.csv", "deep/er/x", "j.out"}); !slices.Equal(got, []string{"out.dat", "nothing.*"}) {
		t.Errorf("%q", got)
	}
	j.Spec.Results = []string{"."}
	if got := Unmatched(j, []string{"x"}); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestJob(t *testing.T) {
	j := fresh()
	c := &minik8s.SlurmClusterSpec{Setup: []string{"s"}, Defaults: minik8s.SlurmDefaults{Partition: "p", Account: "a", QOS: "q", Modules: []string{"m"}}}
	got := Job(j, c, Given{})
	if o := got.Options; o.Partition != "p" || o.Account != "a" || o.QOS != "q" || !slices.Equal(got.Modules, []string{"m"}) || got.Output != "j.out" || got.Error != "j.err" {
		t.Errorf("%+v", got)
	}
	j.Spec.Partition, j.Spec.Modules, j.Spec.OutputFile = "mine", []string{"n"}, "./o//x"
	if got = Job(j, c, Given{}); got.Options.Partition != "mine" || got.Modules[0] != "n" || got.Output != "o/x" {
		t.Errorf("%+v", got)
	}
}
