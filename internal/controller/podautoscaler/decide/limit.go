package decide

import (
	"math"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"minik8s/internal/api/defaults"
)

// The words of the conditions AbleToScale and ScalingLimited.
const (
	lowerBefore  = "recent recommendations were lower than current one, applying the lowest recent recommendation"
	higherBefore = "recent recommendations were higher than current one, applying the highest recent recommendation"
	tooFast      = "the desired replica count is increasing faster than the maximum scale rate"
	tooMany      = "the desired replica count is more than the maximum replica count"
	tooFastDown  = "the desired replica count is decreasing faster than the maximum scale rate"
	tooFew       = "the desired replica count is less than the minimum replica count"
	inRange      = "the desired count is within the acceptable range"
)

// bound is a limit of the number of pods, with the reason and the words of the condition when it is reached.
type bound struct {
	replicas      int32
	reason, words string
}

// limit brings what the metrics want within what is allowed now.
func (in *Input) limit(d *Decision, want int32) int32 {
	h := in.Autoscaler
	var steady int32
	var to bound
	if h.Spec.Behavior == nil {
		steady = in.History.highest(want, in.Settings.DownscaleWindow, in.Now)
		in.steadied(d, want, steady, "ScaleDownStabilized", higherBefore)
		to = in.byDefault(d, steady)
	} else {
		up, down := in.rules()
		steady = in.steady(d, want, up, down)
		to = in.byRules(steady, d.least, up, down)
	}
	d.condition(in.Now, autoscalingv2.ScalingLimited, to.replicas != steady, to.reason, "%s", to.words)
	if to.replicas != steady {
		d.say("limited to %d: %s", to.replicas, to.words)
	}
	return to.replicas
}

func (in *Input) steadied(d *Decision, want, steady int32, reason, words string) {
	if steady == want {
		d.condition(in.Now, autoscalingv2.AbleToScale, true, "ReadyForNewScale", "recommended size matches current size")
		return
	}
	d.condition(in.Now, autoscalingv2.AbleToScale, true, reason, "%s", words)
	d.say("stabilised at %d: %s", steady, words)
}

// byDefault: without a behavior at most twice as many pods at once, or 4.
func (in *Input) byDefault(d *Decision, want int32) bound {
	const factor, atLeast = 2, 4
	most := bound{in.Autoscaler.Spec.MaxReplicas, "TooManyReplicas", tooMany}
	if fast := int32(math.Max(factor*float64(in.Scale.Wanted), atLeast)); most.replicas > fast {
		most = bound{fast, "ScaleUpLimit", tooFast}
	}
	switch {
	case want < d.least:
		return bound{d.least, "TooFewReplicas", tooFew}
	case want > most.replicas:
		return most
	}
	return bound{want, "DesiredWithinRange", inRange}
}

// rules are those of the behavior. What is stored has both; the window for scaling down may be left to the settings.
func (in *Input) rules() (up, down *autoscalingv2.HPAScalingRules) {
	b := in.Autoscaler.Spec.Behavior
	if b.ScaleUp == nil || b.ScaleDown == nil {
		whole := in.Autoscaler.DeepCopy()
		defaults.HorizontalPodAutoscaler(whole)
		b = whole.Spec.Behavior
	}
	return b.ScaleUp, b.ScaleDown
}

// steady is the recommendation as close to the present number of pods as those of the windows allow.
func (in *Input) steady(d *Decision, want int32, up, down *autoscalingv2.HPAScalingRules) int32 {
	now, upWindow, downWindow := in.Scale.Wanted, seconds(0), in.Settings.DownscaleWindow
	if up.StabilizationWindowSeconds != nil {
		upWindow = seconds(*up.StabilizationWindowSeconds)
	}
	if down.StabilizationWindowSeconds != nil {
		downWindow = seconds(*down.StabilizationWindowSeconds)
	}
	least, most := in.History.bounds(want, upWindow, downWindow, in.Now)
	steady := now
	if steady < least {
		steady = least
	}
	if steady > most {
		steady = most
	}
	reason, words := "ScaleDownStabilized", higherBefore
	if want >= now {
		reason, words = "ScaleUpStabilized", lowerBefore
	}
	in.steadied(d, want, steady, reason, words)
	return steady
}

// byRules: as many pods as the policies allow, counting what was scaled in their periods.
func (in *Input) byRules(want, least int32, up, down *autoscalingv2.HPAScalingRules) bound {
	now := in.Scale.Wanted
	switch {
	case want > now:
		most := bound{in.Autoscaler.Spec.MaxReplicas, "TooManyReplicas", tooMany}
		if fast := max(in.allowed(up, true), now); most.replicas > fast {
			most = bound{fast, "ScaleUpLimit", tooFast}
		}
		if want > most.replicas {
			return most
		}
	case want < now:
		fewest := bound{least, "TooFewReplicas", tooFew}
		if fast := min(in.allowed(down, false), now); fewest.replicas < fast {
			fewest = bound{fast, "ScaleDownLimit", tooFastDown}
		}
		if want < fewest.replicas {
			return fewest
		}
	}
	return bound{want, "DesiredWithinRange", inRange}
}

// allowed is how far one way's policies let the number of pods go. Each starts from the number at the beginning of its period.
func (in *Input) allowed(r *autoscalingv2.HPAScalingRules, up bool) int32 {
	now := in.Scale.Wanted
	selects := autoscalingv2.MaxChangePolicySelect
	if r.SelectPolicy != nil {
		selects = *r.SelectPolicy
	}
	if selects == autoscalingv2.DisabledPolicySelect {
		return now
	}
	// The largest change is the largest number upwards, and the smallest downwards.
	largest := (selects != autoscalingv2.MinChangePolicySelect) == up
	to := int32(math.MaxInt32)
	if largest {
		to = math.MinInt32
	}
	for _, p := range r.Policies {
		start := now - within(in.History.up, p.PeriodSeconds, in.Now) + within(in.History.down, p.PeriodSeconds, in.Now)
		one := to // a type that validation refuses changes nothing
		switch {
		case p.Type == autoscalingv2.PodsScalingPolicy && up:
			one = start + p.Value
		case p.Type == autoscalingv2.PodsScalingPolicy:
			one = start - p.Value
		case p.Type == autoscalingv2.PercentScalingPolicy && up: // rounded up, or few pods would never become more
			one = int32(math.Ceil(float64(start) * (1 + float64(p.Value)/100)))
		case p.Type == autoscalingv2.PercentScalingPolicy:
			one = int32(float64(start) * (1 - float64(p.Value)/100))
		}
		if largest {
			to = max(to, one)
		} else {
			to = min(to, one)
		}
	}
	return to
}
