package work

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/bench/bed"
)

const (
	workflowsPath = "/apis/minik8s.io/v1/namespaces/default/"
	// workflowLoop counts to n: two transitions a turn.
	workflowLoop = `{"StartAt":"add","States":{"add":{"Type":"Pass","Parameters":{"i.$":"States.MathAdd($.i, 1)","n.$":"$.n"},"Next":"more"},
		"more":{"Type":"Choice","Choices":[{"Variable":"$.i","NumericLessThanPath":"$.n","Next":"add"}],"Default":"end"},"end":{"Type":"Succeed"}}}`
	workflowTurns = 400 // of the run whose transitions are timed
	workflowMany  = 100 // runs at once
	manyTurns     = 100 // of each of these
)

// Workflows measures transitions of workflows: each is in the store before the next begins.
func Workflows(r *bed.Report) error {
	return bed.WithDaemon(false, func(d *bed.Daemon) error {
		w := &minik8s.Workflow{TypeMeta: metav1.TypeMeta{APIVersion: "minik8s.io/v1", Kind: "Workflow"}, ObjectMeta: metav1.ObjectMeta{Name: "loop"},
			Spec: minik8s.WorkflowSpec{Definition: minik8s.JSON{Raw: []byte(workflowLoop)}, MaxSteps: 10_000}}
		if err := d.Do("POST", workflowsPath+"workflows", w, nil); err != nil {
			return err
		}
		sync, err := bed.Calibrate(d.Dir)
		if err != nil {
			return err
		}
		if _, err := workflowRuns(d, "warm", 1, 50); err != nil {
			return err
		}
		if _, err := workflowRuns(d, "one", 1, workflowTurns); err != nil {
			return err
		}
		var steps minik8s.WorkflowStepList
		if err := d.Do("GET", workflowsPath+"workflowsteps?fieldSelector=spec.run=one-0", nil, &steps); err != nil {
			return err
		}
		times := map[int64]time.Time{}
		for i := range steps.Items {
			times[steps.Items[i].Spec.Number] = steps.Items[i].Spec.Time.Time
		}
		var took bed.Samples
		for n := range int64(len(times) - 1) {
			took = append(took, times[n+1].Sub(times[n]))
		}
		bound := fmt.Sprintf("one synced write takes %.2f ms here; of %d transitions of one run", bed.Ms(sync), len(took))
		r.Add("workflow transition, committed, p50", bed.Ms(took.P(50)), "ms", "<= 5 ms", bound)
		r.Add("workflow transition, committed, p99", bed.Ms(took.P(99)), "ms", "", "")
		span, err := workflowRuns(d, "many", workflowMany, manyTurns)
		if err != nil {
			return err
		}
		r.Add("workflow transitions over many runs", float64(workflowMany*(2*manyTurns+1))/span.Seconds(), "/s", ">= 1000/s", fmt.Sprintf("%d runs at once", workflowMany))
		return nil
	})
}

// workflowRuns makes n runs of the loop, and returns the time from the first one's beginning to the last one's end.
func workflowRuns(d *bed.Daemon, prefix string, n, turns int) (time.Duration, error) {
	for i := range n {
		run := &minik8s.WorkflowRun{TypeMeta: metav1.TypeMeta{APIVersion: "minik8s.io/v1", Kind: "WorkflowRun"}, ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", prefix, i)},
			Spec: minik8s.WorkflowRunSpec{Workflow: "loop", Input: minik8s.JSON{Raw: fmt.Appendf(nil, `{"i":0,"n":%d}`, turns)}}}
		if err := d.Do("POST", workflowsPath+"workflowruns", run, nil); err != nil {
			return 0, err
		}
	}
	var first, last time.Time
	err := d.Until(5*time.Minute, func() bool {
		first, last = time.Time{}, time.Time{}
		for i := range n {
			var run minik8s.WorkflowRun
			if d.Do("GET", fmt.Sprintf("%sworkflowruns/%s-%d", workflowsPath, prefix, i), nil, &run) != nil || run.Status.State != minik8s.RunSucceeded {
				time.Sleep(50 * time.Millisecond) // looking is not to be what is measured
				return false
			}
			if s := run.Status.StartTime.Time; first.IsZero() || s.Before(first) {
				first = s
			}
			if e := run.Status.EndTime.Time; e.After(last) {
				last = e
			}
		}
		return true
	})
	return last.Sub(first), err
}
