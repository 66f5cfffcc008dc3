package podautoscaler

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
)

const (
	autoscalers = 8  // in one world
	steps       = 50 // of each
	period      = 15 * time.Second
)

// worlds is how many worlds make at least so many steps.
func worlds(of int) int { return (of + autoscalers*steps - 1) / (autoscalers * steps) }

func TestAsUpstream(t *testing.T) {
	// Its store of what it wrote itself waits for versions that the clients of tests do not count.
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.StaleControllerConsistencyHPA, false)
	klog.SetLogger(logr.Discard())
	utilruntime.ErrorHandlers = nil // one of them sleeps until the real time of the last error, which in a bubble is far away
	n := worlds(100_000)
	if testing.Short() {
		n = worlds(3_000)
	}
	seeds := regressions(t)
	for i := range n {
		seeds = append(seeds, uint64(i+1))
	}
	if s := os.Getenv("SEED"); s != "" {
		one, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = []uint64{one}
	}
	seen := map[string]int{}
	for _, seed := range seeds {
		if err := play(t, seed, seen); err != nil {
			t.Fatalf("SEED=%d (keep it in testdata/seeds.txt):\n%v", seed, err)
		}
	}
	t.Logf("%d steps", len(seeds)*autoscalers*steps)
	for _, reason := range slices.Sorted(func(yield func(string) bool) {
		for r := range seen {
			if !yield(r) {
				return
			}
		}
	}) {
		t.Logf("%8d %s", seen[reason], reason)
	}
	if os.Getenv("SEED") != "" {
		return
	}
	wanted := []string{"SuccessfulRescale", "ScaleDownStabilized", "ScaleUpLimit", "ScaleDownLimit", "TooManyReplicas", "TooFewReplicas",
		"ScalingDisabled", "FailedGetScale", "FailedRescale", "FailedGetResourceMetric", "FailedGetContainerResourceMetric", "FailedGetPodsMetric",
		"FailedGetObjectMetric", "FailedGetExternalMetric", "FailedComputeMetricsReplicas", "DesiredWithinRange", "ReadyForNewScale"}
	if !testing.Short() { // it is rare
		wanted = append(wanted, "ScaledToZero")
	}
	for _, reason := range wanted {
		if seen[reason] == 0 {
			t.Errorf("no step had the reason %s: the generator has lost it", reason)
		}
	}
}

// regressions are the seeds of worlds in which there was a difference once.
func regressions(t *testing.T) []uint64 {
	data, err := os.ReadFile("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []uint64
	for _, line := range strings.Fields(string(data)) {
		seed, err := strconv.ParseUint(line, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, seed)
	}
	return out
}

// play plays one world, and returns the first difference.
func play(t *testing.T, seed uint64, seen map[string]int) (err error) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		w := newWorld(seed)
		theirs, theirEnd := startUpstream(ctx, w)
		mine, myEnd := startOurs(ctx, w)
		p := &pair{w: w, theirs: theirs, mine: mine, specs: map[string]*autoscalingv2.HorizontalPodAutoscalerSpec{}, seen: seen}
		err = p.course(ctx)
		synctest.Wait()
		cancel()
		theirEnd()
		myEnd()
		synctest.Wait()
	})
	return err
}

type pair struct {
	w      *world
	theirs *upstream
	mine   *ours
	names  []string
	specs  map[string]*autoscalingv2.HorizontalPodAutoscalerSpec
	seen   map[string]int
}

func (p *pair) course(ctx context.Context) error {
	rng := p.w.rng
	for i := range autoscalers {
		name := fmt.Sprintf("h%d", i)
		t := &target{name: name, labels: name, load: 1, style: style{requests: p.w.chance(0.8)}}
		if p.w.chance(0.5) {
			t.style.odd, t.style.unmeasured, t.style.young = 0.4*rng.Float64(), 0.3*rng.Float64(), 0.5*rng.Float64()
		}
		if i > 0 && p.w.chance(0.05) { // one other's pods
			t.labels = p.names[rng.IntN(i)]
		}
		p.w.targets[name], p.specs[name] = t, p.w.spec(name)
		p.names = append(p.names, name)
		p.rescaled(t, pick(rng, int32(1), 2, 5, 0))
	}
	if err := p.change(); err != nil {
		return err
	}
	for i, name := range p.names {
		h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Generation: 1},
			Spec: *p.specs[name]}
		if err := p.theirs.create(ctx, h); err != nil {
			return err
		}
		p.mine.put(api.HorizontalPodAutoscalers, h, false)
		_ = i
		time.Sleep(100 * time.Millisecond) // one after the other, so that each knows those before it
	}
	for step := range steps {
		if err := p.compare(ctx, step); err != nil {
			return err
		}
		time.Sleep(period / 3)
		if err := p.change(); err != nil {
			return err
		}
		for _, name := range p.names {
			often := 0.04
			if p.theirs.scales[name].Spec.Replicas == 0 { // what a new spec means for a target without pods
				often = 0.2
			}
			if !p.w.chance(often) {
				continue
			}
			p.specs[name] = p.w.spec(name)
			if err := errors.Join(p.theirs.respec(ctx, name, p.specs[name]), p.mine.respec(ctx, name, p.specs[name])); err != nil {
				return err
			}
			time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
		}
		time.Sleep(time.Until(time.Now().Truncate(period).Add(period + period/2)))
	}
	return nil
}

// rescaled has others set a target's replicas.
func (p *pair) rescaled(t *target, replicas int32) {
	s := p.w.scale(t, replicas)
	p.theirs.scales[t.name], p.mine.scales[t.name] = s, s.DeepCopy()
}

// change makes the world another one.
func (p *pair) change() error {
	w, rng := p.w, p.w.rng
	w.pods, w.pod, w.podErr, w.value = nil, map[string]map[string]podMetric{}, map[string]error{}, map[string][]int64{}
	for _, name := range p.names {
		t := w.targets[name]
		switch {
		case w.chance(0.1):
			t.load = pick(rng, 0, 0.01, 0.3, 0.5, 0.85, 0.95, 1.05, 1.2, 2, 5, 100)
		case w.chance(0.3):
			t.load *= pick(rng, 0.6, 0.9, 1.1, 1.5)
		case w.chance(0.2):
			t.load = 1
		}
		t.getErr, t.setErr = nil, nil
		if w.chance(0.02) {
			t.getErr = errors.New("the target is away")
		}
		if w.chance(0.03) {
			t.setErr = errors.New("the target does not listen")
		}
		replicas := p.theirs.scales[name].Spec.Replicas
		if w.chance(0.03) || replicas == 0 && w.chance(0.1) {
			replicas = pick(rng, int32(0), 1, 3, 30)
		}
		p.rescaled(t, replicas)
		n := int(min(replicas, 30)) + pick(rng, 0, 0, 0, 0, -1, 1)
		if w.chance(0.02) {
			n = 0
		}
		w.podsOf(t, n, p.specs[name])
	}
	p.mine.setPods(w.pods)
	err := p.theirs.setPods(w.pods)
	synctest.Wait() // ours come by a watch
	return err
}

// compare waits until both have done what they do, and compares it.
func (p *pair) compare(ctx context.Context, step int) error {
	synctest.Wait()
	for _, name := range p.names {
		want, err := p.theirs.get(ctx, name)
		if err != nil {
			return err
		}
		got, err := p.mine.get(ctx, name)
		if err != nil {
			return err
		}
		check := []struct {
			what      string
			got, want any
		}{
			{"replicas", p.mine.scales[name].Spec.Replicas, p.theirs.scales[name].Spec.Replicas},
			{"events", counted(p.seen, p.mine.taken(name)), counted(nil, p.theirs.taken(name))},
			{"conditions", p.conditions(got, p.seen), p.conditions(want, nil)},
			{"status", numbers(got), numbers(want)},
			{"metrics", measured(got, want), want.Status.CurrentMetrics},
		}
		for _, c := range check {
			if apiequality.Semantic.DeepEqual(c.got, c.want) {
				continue
			}
			return fmt.Errorf("step %d at %s, %s of %s:\nours     %+v\nupstream %+v\nspec %+v\nour sum:\n%s", step, time.Now(), c.what, name, c.got, c.want,
				p.specs[name], got.Annotations[api.DecisionAnnotation])
		}
		mine := &autoscalingv2.HorizontalPodAutoscaler{Spec: *p.specs[name].DeepCopy()}
		defaults.HorizontalPodAutoscaler(mine)
		if !apiequality.Semantic.DeepEqual(&mine.Spec, p.specs[name]) {
			return fmt.Errorf("our defaults change %+v to %+v", p.specs[name], mine.Spec)
		}
	}
	return nil
}

// measured are our metrics, but for values for each pod where there was none: there upstream shows what a division by zero
// makes of them, and so does this.
func measured(got, want *autoscalingv2.HorizontalPodAutoscaler) []autoscalingv2.MetricStatus {
	out := got.DeepCopy().Status.CurrentMetrics
	for i := range min(len(out), len(want.Status.CurrentMetrics)) {
		mine, theirs := valueForEach(&out[i]), valueForEach(&want.Status.CurrentMetrics[i])
		if mine != nil && theirs != nil && theirs.AverageValue != nil && theirs.AverageValue.MilliValue() == math.MinInt64 {
			mine.AverageValue = theirs.AverageValue
		}
	}
	return out
}

func valueForEach(m *autoscalingv2.MetricStatus) *autoscalingv2.MetricValueStatus {
	switch {
	case m.Object != nil:
		return &m.Object.Current
	case m.External != nil:
		return &m.External.Current
	}
	return nil
}

func counted(seen map[string]int, events []string) []string {
	out := make([]string, len(events))
	for i, e := range events {
		if f := strings.Fields(e); seen != nil && len(f) > 1 {
			seen[f[1]]++
		}
		out[i] = plain(e)
	}
	return out
}

func (p *pair) conditions(h *autoscalingv2.HorizontalPodAutoscaler, seen map[string]int) map[string]string {
	out := map[string]string{}
	for _, c := range h.Status.Conditions {
		out[string(c.Type)] = fmt.Sprintf("%s %s %s since %s", c.Status, c.Reason, plain(c.Message), c.LastTransitionTime.UTC())
		if seen != nil {
			seen[c.Reason]++
		}
	}
	return out
}

func numbers(h *autoscalingv2.HorizontalPodAutoscaler) string {
	generation := int64(0)
	if h.Status.ObservedGeneration != nil {
		generation = *h.Status.ObservedGeneration
	}
	return fmt.Sprintf("current %d, desired %d, last %v, generation %d", h.Status.CurrentReplicas, h.Status.DesiredReplicas, h.Status.LastScaleTime, generation)
}
