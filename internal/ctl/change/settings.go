package change

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// ParseSettings reads KEY=VALUE arguments; nil if there are none.
func ParseSettings(args []string) (*minik8s.ClusterConfigSpec, error) {
	if len(args) == 0 {
		return nil, nil
	}
	spec := &minik8s.ClusterConfigSpec{}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		switch {
		case !ok || key != "sched":
			return nil, exit.Usagef("%q is no setting; there is sched=STRATEGY", arg)
		case !slices.Contains(minik8s.Strategies, value):
			return nil, exit.Usagef("there is no strategy %q; one of %s", value, strings.Join(minik8s.Strategies, ", "))
		case spec.Scheduler.Strategy != "" && spec.Scheduler.Strategy != value:
			return nil, exit.Usagef("sched is given twice, as %q and as %q", spec.Scheduler.Strategy, value)
		}
		spec.Scheduler.Strategy = value
	}
	return spec, nil
}

var clusterConfig = client.Key{Kind: api.ClusterConfigs, Name: minik8s.ClusterConfigName}

// ShowSettings prints the settings of the cluster.
func ShowSettings(ctx context.Context, s *session.Session) error {
	cfg, err := client.Get[*minik8s.ClusterConfig](ctx, s.API, clusterConfig)
	if apierrors.IsNotFound(err) {
		cfg, err = &minik8s.ClusterConfig{}, nil
	}
	if err != nil {
		return err
	}
	s.Say("sched=%s", cfg.Spec.Scheduler.StrategyOr())
	return nil
}

// SetSettings writes into the ClusterConfig, and creates it if there is none.
func SetSettings(ctx context.Context, s *session.Session, spec minik8s.ClusterConfigSpec) error {
	change, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	opts := client.WriteOptions{FieldManager: session.Manager}
	patch := func() error {
		_, err := s.API.Patch(ctx, clusterConfig, client.Patch{Type: types.MergePatchType, Data: change}, opts)
		return err
	}
	if err = patch(); apierrors.IsNotFound(err) {
		_, err = s.API.Create(ctx, &minik8s.ClusterConfig{
			ObjectMeta: metav1.ObjectMeta{Name: minik8s.ClusterConfigName}, Spec: spec}, opts)
		if apierrors.IsAlreadyExists(err) { // somebody created it in the meantime
			err = patch()
		}
	}
	if err != nil {
		return err
	}
	s.Say("sched=%s", spec.Scheduler.Strategy)
	return nil
}
