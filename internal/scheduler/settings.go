package scheduler

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/scheduler/plan"
)

// configChanged applies the strategy that the ClusterConfig names, and records an Event on it.
func (s *Scheduler) configChanged(ctx context.Context, old, now *minik8s.ClusterConfig) {
	about, config := now, minik8s.SchedulerConfig{}
	if now == nil {
		about = old
	} else {
		config = now.Spec.Scheduler
	}
	if about.Name != minik8s.ClusterConfigName {
		return
	}
	next := plan.Strategy(config.StrategyOr())
	if next == s.strategy {
		return
	}
	// What is set when the scheduler starts is not a change, so there is no Event for it.
	if old != nil || s.synced {
		s.record.Event(about, corev1.EventTypeNormal, "StrategyChanged", "The scheduler's strategy is now %s, it was %s", next, s.strategy)
	}
	s.log.Info("scheduling strategy changed", "strategy", string(next), "before", string(s.strategy))
	s.strategy = next
	s.cluster.SetStrategy(next)
	s.followUsage(ctx, next == plan.MinCPU || next == plan.MinMem)
}
