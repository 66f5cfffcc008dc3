package why

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/api/table"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/function/plan"
)

// functionFacts is what explains a Function.
type functionFacts struct {
	instances []*corev1.Pod
	failed    *minik8s.FunctionCall    // the last kept call that failed; nil: none did
	recent    []minik8s.FunctionRecord // the last calls that somebody has waited for, as the leading master remembers them
}

// lastFailed is the last of the recent calls that failed, and how many of all have.
func (f *functionFacts) lastFailed() (last *minik8s.FunctionRecord, failed int) {
	for i := range f.recent {
		r := &f.recent[i]
		if r.Fault == "" {
			continue
		}
		failed++
		if last == nil || last.Time.Before(&r.Time) {
			last = r
		}
	}
	return last, failed
}

func (l *look) function(ctx context.Context, f *minik8s.Function) *functionFacts {
	facts := &functionFacts{}
	facts.instances, _, _ = client.All[*corev1.Pod](ctx, l.api, api.Pods, client.ListOptions{Namespace: f.Namespace,
		Labels: labels.SelectorFromSet(labels.Set{minik8s.FunctionLabel: plan.Derived(f.Name)})})
	calls, _, _ := client.All[*minik8s.FunctionCall](ctx, l.api, api.FunctionCalls, client.ListOptions{Namespace: f.Namespace})
	for _, c := range calls {
		if c.Spec.Function != f.Name || c.Status.State != minik8s.CallFailed || c.Status.EndTime == nil {
			continue
		}
		if facts.failed == nil || facts.failed.Status.EndTime.Before(c.Status.EndTime) {
			facts.failed = c
		}
	}
	path := fmt.Sprintf("/apis/minik8s.io/v1/namespaces/%s/functions/%s/%s", url.PathEscape(f.Namespace), url.PathEscape(f.Name), minik8s.FunctionCallsSubresource)
	if resp, err := l.api.Do(ctx, http.MethodGet, path, nil, "", nil); err == nil {
		defer resp.Body.Close()                                                  //nolint:errcheck // it is only read
		if err := json.NewDecoder(resp.Body).Decode(&facts.recent); err != nil { // half an explanation is better than none
			facts.recent = nil
		}
	}
	return facts
}

// explainFunction says whether a function can be called, which of its instances take calls, and how its last calls failed: those
// that somebody has waited for, and the last one that is kept.
func (s *situation) explainFunction(f *minik8s.Function) Explanation {
	var v Explanation
	condition := func(kind string) *metav1.Condition {
		if f.Status.ObservedGeneration != f.Generation {
			return nil
		}
		return apimeta.FindStatusCondition(f.Status.Conditions, kind)
	}
	sick := 0
	var lines []string
	for _, p := range s.function.instances {
		state := table.PodStatus(p)
		lines = append(lines, fmt.Sprintf("%s  %s%s", p.Name, state, onNode(p)))
		if p.DeletionTimestamp == nil && !isPodReady(p) && s.badness(p) > 0 {
			sick++
			v.try("why pod %s%s", p.Name, brief.Namespace(p.Namespace))
		}
	}
	v.fact("Instances", few(lines, 20))
	switch ready := condition(minik8s.FunctionReady); {
	case ready == nil:
		v.Head = fmt.Sprintf("%s: no master has looked at its present form yet", s.name())
		v.because("the function controller runs on the leading master; is there one?")
		v.try("get leases -n kube-system")
	case ready.Status != metav1.ConditionTrue:
		v.Head = fmt.Sprintf("%s cannot be called: %s", s.name(), ready.Reason)
		v.because("%s", brief.Clip(ready.Message, 500))
	case sick > 0:
		v.Head = fmt.Sprintf("%s can be called, but %d of its %d instances do not start", s.name(), sick, len(s.function.instances))
	default:
		v.Good = true
		v.Head = fmt.Sprintf("%s can be called; %d of its %d instances take calls", s.name(), f.Status.ReadyInstances, f.Status.Instances)
		if f.Status.Instances == 0 {
			v.Head = fmt.Sprintf("%s can be called; it has no instance, as nobody calls: the next call starts one", s.name())
		}
	}
	if at := condition(minik8s.FunctionAddressed); at != nil && at.Status != metav1.ConditionTrue {
		v.Good = false
		v.because("its address: %s: %s", at.Reason, brief.Clip(at.Message, 300))
	}
	last, failed := s.function.lastFailed()
	if all := len(s.function.recent); failed > 0 {
		if failed == all && v.Good {
			v.Good = false
			v.Head += ", but every call of late has failed"
		}
		v.because("%d of the last %d calls that somebody has waited for have failed; the last is %s, %s, by the fault of the %s%s", failed, all, last.ID, s.ago(last.Time.Time), last.Fault, traceText(last.Trace))
		v.said(last.Result)
		v.try("func calls %s%s", f.Name, brief.Namespace(f.Namespace))
	}
	if c := s.function.failed; c != nil {
		v.because("call %s has failed %s, by the fault of the %s%s", c.Name, s.ago(c.Status.EndTime.Time), c.Status.Fault, traceText(c.Status.Trace))
		if last == nil || last.Time.Before(c.Status.EndTime) {
			v.said(string(c.Status.Result))
		}
	}
	v.try("func top %s%s", f.Name, brief.Namespace(f.Namespace))
	v.try("func logs %s%s", f.Name, brief.Namespace(f.Namespace))
	return v
}

// said shows the end of what a failed call was answered with.
func (v *Explanation) said(result string) {
	v.LogHead = "What it said"
	all := strings.Split(strings.TrimRight(result, "\n"), "\n")
	v.Log = all[max(0, len(all)-logTail):]
}

func traceText(trace string) string {
	if trace == "" {
		return ""
	}
	return " (trace " + trace + ")"
}
