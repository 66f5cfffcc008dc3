package job

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/controller/sightings"
	"minik8s/internal/events"
)

func newJob(change func(*batchv1.JobSpec)) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "work", Namespace: "default", UID: "j"},
		Spec: batchv1.JobSpec{Template: ct.Template("work", "x:1")}}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	if change != nil {
		change(&job.Spec)
	}
	defaults.Job(job)
	return job
}

func TestIndexes(t *testing.T) {
	for in, want := range map[string]string{"": "", "0": "0", "0-3,5": "0-3,5", "1,2": "1,2", "3,1,2,9": "1-3,9", "x,4-": "", "8-20": "8,9"} {
		if got := parseIndexes(in, 10).String(); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestBackoff(t *testing.T) {
	now := time.Unix(10000, 0)
	pod := func(phase corev1.PodPhase, ago int64) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Unix(10000-ago, 0)}}}}}}
	}
	const f, s = corev1.PodFailed, corev1.PodSucceeded
	for i, test := range []struct {
		pods []*corev1.Pod
		want time.Duration
	}{
		{nil, 0},
		{[]*corev1.Pod{pod(f, 0)}, 10 * time.Second},
		{[]*corev1.Pod{pod(f, 4)}, 6 * time.Second},
		{[]*corev1.Pod{pod(f, 30), pod(f, 20), pod(f, 0)}, 40 * time.Second},
		{[]*corev1.Pod{pod(f, 30), pod(s, 10), pod(f, 0)}, 10 * time.Second},
		{[]*corev1.Pod{pod(f, 30), pod(s, 0)}, 0},
		{slices.Repeat([]*corev1.Pod{pod(f, 0)}, 30), maxBackoff},
	} {
		if got := backoff(test.pods, now, func(*corev1.Pod) bool { return true }); got != test.want {
			t.Errorf("%d: got %s, want %s", i, got, test.want)
		}
	}
}

// world is a job and its pods, with everything around the controller played by chance.
type world struct {
	r    *rand.Rand
	job  *batchv1.Job
	pods map[types.UID]*corev1.Pod
	seen map[types.UID]*corev1.Pod // the controller's view, which may be late
	now  time.Time
	n    int
}

func (w *world) look() {
	w.seen = map[types.UID]*corev1.Pod{}
	for uid, p := range w.pods {
		w.seen[uid] = p.DeepCopy()
	}
}

// act lets the controller take a step; broken says at which of its writes it is killed.
func (w *world) act(broken int) {
	var list []*corev1.Pod
	for _, p := range w.seen {
		list = append(list, p.DeepCopy())
	}
	settled := len(w.seen) == len(w.pods)
	for uid, p := range w.pods {
		s := w.seen[uid]
		settled = settled && s != nil && (s.DeletionTimestamp != nil) == (p.DeletionTimestamp != nil)
	}
	p := decide(w.job, list, settled, began(w.job), w.now)
	writes := 0
	alive := func() bool { writes++; return broken < 0 || writes <= broken }
	if p.changed {
		if !alive() {
			return
		}
		w.job.Status = *p.status.DeepCopy()
	}
	free := func(pod *corev1.Pod) {
		if real := w.pods[pod.UID]; real != nil {
			real.Finalizers = nil
			if real.DeletionTimestamp != nil {
				delete(w.pods, pod.UID)
			}
		}
	}
	remove := func(pod *corev1.Pod) {
		if real := w.pods[pod.UID]; real != nil {
			real.DeletionTimestamp = &metav1.Time{Time: w.now}
			if len(real.Finalizers) == 0 {
				delete(w.pods, pod.UID)
			}
		}
	}
	for _, pod := range p.untrack {
		if !alive() {
			return
		}
		free(pod)
	}
	for _, pod := range p.end {
		if !alive() {
			return
		}
		remove(pod)
	}
	for _, pod := range p.remove {
		if !alive() {
			return
		}
		free(pod)
		remove(pod)
	}
	for _, want := range p.create {
		if !alive() {
			return
		}
		w.n++
		pod := podFor(w.job, want)
		pod.Name, pod.UID = fmt.Sprintf("p%d", w.n), types.UID(fmt.Sprintf("p%d", w.n))
		pod.CreationTimestamp, pod.Spec.NodeName = metav1.NewTime(w.now), "n"
		pod.Status.Phase = corev1.PodRunning
		w.pods[pod.UID] = pod
	}
}

// end lets a pod end.
func (w *world) end(good int) {
	for _, p := range w.pods {
		if p.Status.Phase != corev1.PodRunning {
			continue
		}
		p.Status.Phase = corev1.PodFailed
		if w.r.IntN(100) < good {
			p.Status.Phase = corev1.PodSucceeded
		}
		return
	}
}

// TestNeverMiscounts: late views and a controller that is killed after any of its writes make no pod be
// counted twice or not at all.
func TestNeverMiscounts(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		wanted, indexed := int32(r.IntN(8)+1), seed%2 == 0
		job := newJob(func(s *batchv1.JobSpec) {
			s.Completions, s.Parallelism, s.BackoffLimit = &wanted, new(int32(r.IntN(4)+1)), new(int32(1000))
			if indexed {
				s.CompletionMode = new(batchv1.IndexedCompletion)
			}
		})
		w := &world{r: r, job: job, pods: map[types.UID]*corev1.Pod{}, now: time.Unix(1e6, 0)}
		w.look()
		for i := 0; finished(w.job) == nil; i++ {
			if i > 5000 {
				t.Fatalf("seed %d: it never ends: %+v", seed, w.job.Status)
			}
			switch k := r.IntN(10); {
			case k < 4:
				w.look()
			case k < 7:
				w.act(r.IntN(6) - 1)
			case k < 9:
				w.end(70)
			default:
				w.now = w.now.Add(time.Minute)
			}
			active := 0
			for _, p := range w.pods {
				if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
					active++
				}
			}
			if active > int(*job.Spec.Parallelism) {
				t.Fatalf("seed %d: %d pods run, %d may", seed, active, *job.Spec.Parallelism)
			}
		}
		var succeeded, failed int32
		for _, p := range w.pods {
			switch p.Status.Phase {
			case corev1.PodSucceeded:
				succeeded++
			case corev1.PodFailed:
				failed++
			}
		}
		st := &w.job.Status
		if st.Succeeded != succeeded || st.Failed != failed || st.Succeeded != wanted || st.Active != 0 || len(st.UncountedTerminatedPods.Failed) > 0 {
			t.Fatalf("seed %d: counted %d and %d, there are %d and %d, wanted %d: %+v", seed, st.Succeeded, st.Failed, succeeded, failed, wanted, st)
		}
		if indexed && st.CompletedIndexes != parseIndexes(fmt.Sprintf("0-%d", wanted-1), 100).String() {
			t.Fatalf("seed %d: indexes %s of %d", seed, st.CompletedIndexes, wanted)
		}
	}
}

func TestVerdicts(t *testing.T) {
	now := time.Unix(1e6, 0)
	bad := func(n, index int) []*corev1.Pod {
		var out []*corev1.Pod
		for i := range n {
			p := podFor(newJob(nil), want{index: index, failures: i})
			p.UID = types.UID(fmt.Sprint("p", i))
			p.Status.Phase = corev1.PodFailed
			p.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: fmt.Sprint(index), batchv1.JobIndexFailureCountAnnotation: fmt.Sprint(i)}
			out = append(out, p)
		}
		return out
	}
	disrupted := func(list []*corev1.Pod) []*corev1.Pod {
		list[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
		return list
	}
	for name, test := range map[string]struct {
		change func(*batchv1.JobSpec)
		pods   []*corev1.Pod
		reason string
	}{
		"backoff limit": {func(s *batchv1.JobSpec) { s.BackoffLimit = new(int32(2)) }, bad(3, 0), batchv1.JobReasonBackoffLimitExceeded},
		"below it":      {func(s *batchv1.JobSpec) { s.BackoffLimit = new(int32(3)) }, bad(3, 0), ""},
		"deadline":      {func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = new(int64(10)) }, nil, batchv1.JobReasonDeadlineExceeded},
		"suspended":     {func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = new(int64(10)); s.Suspend = new(true) }, nil, ""},
		"indexes": {func(s *batchv1.JobSpec) {
			s.CompletionMode, s.Completions, s.BackoffLimitPerIndex = new(batchv1.IndexedCompletion), new(int32(1)), new(int32(1))
		}, bad(2, 0), batchv1.JobReasonFailedIndexes},
		"policy": {func(s *batchv1.JobSpec) {
			s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionFailJob,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}}}
		}, disrupted(bad(1, 0)), batchv1.JobReasonPodFailurePolicy},
	} {
		job := newJob(test.change)
		job.Status.StartTime = &metav1.Time{Time: now.Add(-time.Minute)}
		p := decide(job, test.pods, true, began(job), now)
		got := ""
		if c := condition(&p.status, batchv1.JobFailureTarget); c != nil {
			got = c.Reason
		}
		if got != test.reason {
			t.Errorf("%s: got %q, want %q", name, got, test.reason)
		}
		if test.reason != "" && len(p.create) > 0 {
			t.Errorf("%s: pods are made for a job that has failed", name)
		}
	}
}

// The success policy ends a job as soon as one of its rules is met; what makes it fail at the same moment comes first.
func TestGoodEnough(t *testing.T) {
	now := time.Unix(1e6, 0)
	rule := func(indexes string, count int32) batchv1.SuccessPolicyRule {
		var r batchv1.SuccessPolicyRule
		if indexes != "" {
			r.SucceededIndexes = &indexes
		}
		if count >= 0 {
			r.SucceededCount = &count
		}
		return r
	}
	type rules = []batchv1.SuccessPolicyRule
	const met = batchv1.JobReasonSuccessPolicy
	for i, test := range []struct {
		rules        rules
		good         string // the indexes that have succeeded
		bad          []int  // those that have failed
		change       func(*batchv1.JobSpec)
		reason, text string
	}{
		{rules: rules{rule("0", -1)}},
		{rules: rules{rule("0", -1)}, good: "1-3"},
		{rules: rules{rule("0", -1)}, good: "0", reason: met, text: "Matched rules at index 0"},
		{rules: rules{rule("0,2-3", -1)}, good: "0,2"},
		{rules: rules{rule("0,2-3", -1)}, good: "0,2-3", reason: met, text: "Matched rules at index 0"},
		{rules: rules{rule("0,2-3", 2)}, good: "1-2"},
		{rules: rules{rule("0,2-3", 2)}, good: "1-3", reason: met, text: "Matched rules at index 0"},
		{rules: rules{rule("", 2)}, good: "4"},
		{rules: rules{rule("", 2)}, good: "1,4", reason: met, text: "Matched rules at index 0"},
		{rules: rules{rule("", 0)}},
		{rules: rules{rule("", 0)}, good: "4", reason: met, text: "Matched rules at index 0"},
		{rules: rules{rule("4", -1), rule("0", -1), rule("", 1)}, good: "0", reason: met, text: "Matched rules at index 1"},
		{rules: rules{rule("0-4", -1)}, good: "0-4", reason: met, text: "Matched rules at index 0"},
		{good: "0-4", reason: batchv1.JobReasonCompletionsReached, text: "Reached expected number of succeeded pods"},
		{rules: rules{rule("0", -1)}, good: "0", bad: []int{1, 2}, change: func(s *batchv1.JobSpec) { s.BackoffLimit = new(int32(1)) },
			reason: batchv1.JobReasonBackoffLimitExceeded, text: "Job has reached the specified backoff limit"},
		{rules: rules{rule("0", -1)}, good: "0", bad: []int{1}, change: func(s *batchv1.JobSpec) { s.BackoffLimitPerIndex = new(int32(0)) },
			reason: met, text: "Matched rules at index 0"},
		{rules: rules{rule("0", -1)}, good: "0", bad: []int{1}, change: func(s *batchv1.JobSpec) { s.BackoffLimitPerIndex, s.MaxFailedIndexes = new(int32(0)), new(int32(0)) },
			reason: batchv1.JobReasonMaxFailedIndexesExceeded, text: "Job has exceeded the specified maximal number of failed indexes"},
		{rules: rules{rule("0", -1)}, good: "0", bad: []int{1}, change: func(s *batchv1.JobSpec) {
			s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionFailJob,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}}}
		}, reason: batchv1.JobReasonPodFailurePolicy, text: "Pod default/p1 has condition DisruptionTarget matching FailJob rule at index 0"},
	} {
		job := newJob(func(s *batchv1.JobSpec) {
			s.CompletionMode, s.Completions, s.Parallelism = new(batchv1.IndexedCompletion), new(int32(5)), new(int32(5))
			s.SuccessPolicy = &batchv1.SuccessPolicy{Rules: test.rules}
			if test.change != nil {
				test.change(s)
			}
		})
		var list []*corev1.Pod
		for ix := range 5 {
			p := podFor(job, want{index: ix})
			p.Name, p.UID, p.Spec.NodeName, p.Status.Phase = fmt.Sprint("p", ix), types.UID(fmt.Sprint("p", ix)), "n", corev1.PodRunning
			if parseIndexes(test.good, 5).has(ix) {
				p.Status.Phase = corev1.PodSucceeded
			}
			if slices.Contains(test.bad, ix) {
				p.Status.Phase = corev1.PodFailed
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
			}
			list = append(list, p)
		}
		running := 5 - len(parseIndexes(test.good, 5)) - len(test.bad)
		p := decide(job, list, true, began(job), now)
		c := condition(&p.status, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet)
		switch {
		case test.reason == "":
			if c != nil || len(p.end) > 0 {
				t.Errorf("%d: it ends: %+v", i, c)
			}
		case c == nil || c.Reason != test.reason || c.Message != test.text || (c.Type == batchv1.JobSuccessCriteriaMet) != (test.reason == met || test.bad == nil):
			t.Errorf("%d: got %+v, want %s: %s", i, c, test.reason, test.text)
		case len(p.end) != running || len(p.create) > 0:
			t.Errorf("%d: of %d pods that run %d are ended, and %d made", i, running, len(p.end), len(p.create))
		case condition(&p.status, batchv1.JobComplete, batchv1.JobFailed) != nil:
			t.Errorf("%d: it has ended before its pods", i)
		}
	}
}

// Once a job's success policy is met, nothing changes that, and it is complete when the last pod has ended.
func TestStaysGoodEnough(t *testing.T) {
	now := time.Unix(1e6, 0)
	job := newJob(func(s *batchv1.JobSpec) {
		s.CompletionMode, s.Completions, s.Parallelism = new(batchv1.IndexedCompletion), new(int32(2)), new(int32(2))
		s.BackoffLimit, s.SuccessPolicy = new(int32(0)), &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: new("0")}}}
	})
	one := func(ix int, phase corev1.PodPhase) *corev1.Pod {
		p := podFor(job, want{index: ix})
		p.UID, p.Spec.NodeName, p.Status.Phase = types.UID(fmt.Sprint("p", ix)), "n", phase
		return p
	}
	good, other := one(0, corev1.PodSucceeded), one(1, corev1.PodRunning)
	job.Status = decide(job, []*corev1.Pod{good, other}, true, began(job), now).status
	good.Finalizers = nil
	other.DeletionTimestamp = &metav1.Time{Time: now}
	job.Status = decide(job, []*corev1.Pod{good, other}, true, began(job), now).status
	if finished(job) != nil || *job.Status.Terminating != 1 {
		t.Fatalf("a pod still ends: %+v", job.Status)
	}
	other.Status.Phase = corev1.PodFailed // more than the backoff limit
	job.Status = decide(job, []*corev1.Pod{good, other}, true, began(job), now).status
	job.Status = decide(job, []*corev1.Pod{good}, true, began(job), now).status
	if c := finished(job); c == nil || c.Type != batchv1.JobComplete || c.Reason != batchv1.JobReasonSuccessPolicy || c.Message != "Matched rules at index 0" ||
		job.Status.CompletedIndexes != "0" || job.Status.Succeeded != 1 || job.Status.CompletionTime == nil || job.Status.Active != 0 {
		t.Errorf("%+v", job.Status)
	}
}

// start runs the controller in a cluster whose pods end as end says.
func start(t *testing.T, end func(*corev1.Pod) corev1.PodPhase) *ct.Cluster {
	c := ct.New(t)
	c.Hollow(end, "n1")
	c.Start(New(c.As("job-controller"), c.Views(), events.New(c.As("job-controller"), "t", "", nil), sightings.New(), slog.New(slog.DiscardHandler)).Run)
	return c
}

func succeed(*corev1.Pod) corev1.PodPhase { return corev1.PodSucceeded }

// create stores a job as a user would write it.
func create(c *ct.Cluster, change func(*batchv1.JobSpec)) {
	job := newJob(change)
	job.UID = ""
	ct.Create(c, job)
}

func untilJob(c *ct.Cluster, what string, cond func(*batchv1.Job) bool) *batchv1.Job {
	return ct.Until(c, what, api.Jobs, func(list []*batchv1.Job) bool { return len(list) == 1 && cond(list[0]) })[0]
}

// With podReplacementPolicy Failed a pod that is being deleted is neither replaced nor a failure before
// it has ended; then it is both.
func TestReplacesOnlyWhatHasFailed(t *testing.T) {
	now := time.Unix(1e6, 0)
	job := newJob(func(s *batchv1.JobSpec) { s.PodReplacementPolicy = new(batchv1.Failed) })
	p := podFor(job, want{index: -1})
	p.UID, p.Spec.NodeName, p.Status.Phase = "p", "n", corev1.PodRunning
	p.DeletionTimestamp = &metav1.Time{Time: now}
	got := decide(job, []*corev1.Pod{p}, true, began(job), now)
	if len(got.create) != 0 || *got.status.Terminating != 1 || got.status.Failed != 0 || len(got.untrack) != 0 {
		t.Errorf("while it ends: %+v", got)
	}
	p.Status.Phase = corev1.PodFailed
	got = decide(job, []*corev1.Pod{p}, true, began(job), now.Add(time.Minute))
	if len(got.untrack) != 1 || len(got.status.UncountedTerminatedPods.Failed) != 1 || len(got.create) != 1 {
		t.Errorf("when it has ended: %+v", got)
	}
}

func TestSuspendsAndResumes(t *testing.T) {
	c := start(t, nil) // its pods run on and on
	create(c, func(s *batchv1.JobSpec) { s.Parallelism, s.Completions = new(int32(3)), new(int32(3)) })
	suspend := func(yes bool) {
		ct.Change(c, api.Jobs, "work", func(j *batchv1.Job) { j.Spec.Suspend = &yes })
	}
	running := func(j *batchv1.Job) bool { return j.Status.Active == 3 && *j.Status.Ready == 3 }
	untilJob(c, "running", running)
	suspend(true)
	j := untilJob(c, "suspended", func(j *batchv1.Job) bool {
		return j.Status.Active == 0 && condition(&j.Status, batchv1.JobSuspended) != nil
	})
	if j.Status.Failed != 0 {
		t.Errorf("%d pods that were told to end count as failed", j.Status.Failed)
	}
	ct.Until(c, "no pods", api.Pods, func(list []*corev1.Pod) bool { return len(list) == 0 })
	suspend(false)
	untilJob(c, "running again", func(j *batchv1.Job) bool { return running(j) && condition(&j.Status, batchv1.JobSuspended) == nil })
}

// A job whose work is done is complete, also when it was suspended meanwhile.
func TestCompletesWhileSuspended(t *testing.T) {
	job := newJob(func(s *batchv1.JobSpec) { s.Suspend = new(true) })
	job.Status.Succeeded = 1
	if p := decide(job, nil, true, began(job), time.Unix(1e6, 0)); condition(&p.status, batchv1.JobComplete) == nil {
		t.Errorf("%+v", p.status)
	}
}

func TestGoesAfterItsTime(t *testing.T) {
	c := start(t, succeed)
	create(c, func(s *batchv1.JobSpec) { s.TTLSecondsAfterFinished = new(int32(0)) })
	untilJob(c, "being deleted, after its pods", func(j *batchv1.Job) bool {
		return j.DeletionTimestamp != nil && slices.Contains(j.Finalizers, metav1.FinalizerDeleteDependents)
	})
}

func TestGivesUpAnIndex(t *testing.T) {
	c := start(t, func(p *corev1.Pod) corev1.PodPhase {
		if indexOf(p) == 1 {
			return corev1.PodFailed
		}
		return corev1.PodSucceeded
	})
	create(c, func(s *batchv1.JobSpec) {
		s.Completions, s.Parallelism, s.CompletionMode = new(int32(3)), new(int32(2)), new(batchv1.IndexedCompletion)
		s.BackoffLimitPerIndex = new(int32(5))
		s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionFailIndex,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{1}}}}}
	})
	j := untilJob(c, "failed", func(j *batchv1.Job) bool { return condition(&j.Status, batchv1.JobFailed) != nil })
	if j.Status.CompletedIndexes != "0,2" || j.Status.FailedIndexes == nil || *j.Status.FailedIndexes != "1" || j.Status.Failed != 1 {
		t.Errorf("%+v", j.Status)
	}
}

func TestEndsWhenGoodEnough(t *testing.T) {
	c := start(t, func(p *corev1.Pod) corev1.PodPhase {
		if indexOf(p) == 1 {
			return corev1.PodSucceeded
		}
		return corev1.PodRunning
	})
	create(c, func(s *batchv1.JobSpec) {
		s.Completions, s.Parallelism, s.CompletionMode = new(int32(5)), new(int32(3)), new(batchv1.IndexedCompletion)
		s.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: new("1,4"), SucceededCount: new(int32(1))}}}
	})
	j := untilJob(c, "complete", func(j *batchv1.Job) bool { return condition(&j.Status, batchv1.JobComplete) != nil })
	if j.Status.CompletedIndexes != "1" || j.Status.Succeeded != 1 || condition(&j.Status, batchv1.JobSuccessCriteriaMet) == nil {
		t.Errorf("%+v", j.Status)
	}
	ct.Until(c, "the others are gone", api.Pods, func(list []*corev1.Pod) bool { return len(list) == 1 && !tracked(list[0]) })
}

// A job that names another controller is left to it.
func TestLeavesOthersJobsAlone(t *testing.T) {
	c := start(t, succeed)
	create(c, func(s *batchv1.JobSpec) { s.ManagedBy = new("example.com/queue") })
	own := newJob(nil)
	own.Name, own.UID = "own", ""
	ct.Create(c, own)
	list := ct.Until(c, "our own is complete", api.Jobs, func(list []*batchv1.Job) bool {
		return len(list) == 2 && slices.ContainsFunc(list, func(j *batchv1.Job) bool { return finished(j) != nil })
	})
	for _, j := range list {
		if j.Name == "work" && j.Status.StartTime != nil {
			t.Errorf("it was begun: %+v", j.Status)
		}
	}
}

func TestRunsInACluster(t *testing.T) {
	c := start(t, succeed)
	job := newJob(func(s *batchv1.JobSpec) {
		s.Completions, s.Parallelism, s.CompletionMode = new(int32(7)), new(int32(3)), new(batchv1.IndexedCompletion)
	})
	job.UID = ""
	ct.Create(c, job)
	done := ct.Until(c, "complete", api.Jobs, func(list []*batchv1.Job) bool { return finished(list[0]) != nil })[0]
	if done.Status.Succeeded != 7 || done.Status.CompletedIndexes != "0-6" || done.Status.Failed != 0 {
		t.Errorf("%+v", done.Status)
	}
	ct.Until(c, "no pod is held", api.Pods, func(list []*corev1.Pod) bool {
		return len(list) == 7 && !slices.ContainsFunc(list, tracked)
	})
}

// began is when a job started, as its status says.
func began(job *batchv1.Job) (at time.Time) {
	if job.Status.StartTime != nil {
		at = job.Status.StartTime.Time
	}
	return at
}
