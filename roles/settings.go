package roles

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/config"
	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/membership"
	"minik8s/internal/supervise"
)

// settingsKey is the ConfigMap with the settings of which the cluster has one value.
var settingsKey = client.Key{Kind: api.ConfigMaps, Namespace: metav1.NamespaceSystem, Name: membership.SettingsMap}

// newSettings are what a first master makes of its own.
func (d *Daemon) newSettings() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: settingsKey.Namespace, Name: settingsKey.Name}, Data: d.cfg.Shared()}
}

// agree compares a master's settings with those of the cluster. A machine that is alone in it changes the cluster's, since there
// is nobody to disagree with; and every master adds those that earlier versions did not have.
func (d *Daemon) agree(ctx context.Context) error {
	for {
		cm, err := client.Get[*corev1.ConfigMap](ctx, d.Client(), settingsKey)
		if err != nil {
			return fmt.Errorf("the cluster's settings: %w", err)
		}
		own := d.cfg.Shared()
		if err := membership.Shared(cm.Data).Differ(own); err != nil {
			alone, lerr := d.alone(ctx)
			if lerr != nil {
				return lerr
			}
			if !alone {
				return err
			}
			d.log.Info("the cluster has new settings", "was", err)
		}
		want := maps.Clone(cm.Data)
		if want == nil {
			want = map[string]string{}
		}
		maps.Copy(want, own)
		if maps.Equal(want, cm.Data) {
			return nil
		}
		upd := cm.DeepCopy()
		upd.Data = want
		if _, err := d.Client().Update(ctx, upd, client.WriteOptions{}); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// alone reports whether there is no other machine in the cluster.
func (d *Daemon) alone(ctx context.Context) (bool, error) {
	nodes, _, err := client.All[*corev1.Node](ctx, d.Client(), api.Nodes, client.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("the cluster's machines: %w", err)
	}
	for _, n := range nodes {
		if n.Name != d.cfg.NodeName {
			return false, nil
		}
	}
	return true, nil
}

// Settings implements members.Store.
func (m members) Settings(ctx context.Context) (membership.Shared, error) {
	cm, err := client.Get[*corev1.ConfigMap](ctx, m.d.Client(), settingsKey)
	if err != nil {
		return nil, err
	}
	return cm.Data, nil
}

// settingsParts are those of a worker alone that has to agree with the cluster.
func (d *Daemon) settingsParts() []supervise.Part {
	if d.cfg.Has(config.Master) {
		return nil
	}
	return []supervise.Part{{Name: "settings", Policy: supervise.Must, Run: d.runSettings, After: []string{"credentials"}}}
}

// runSettings compares a worker's settings with those of the cluster, as soon as a master can be asked. A machine that joins waits
// for that, so that nobody is told of it before; one that has joined goes on meanwhile.
func (d *Daemon) runSettings(ctx context.Context, ready func()) error {
	joined := len(d.balancer.Upstreams()) > 0
	if joined {
		ready()
	}
	for pause := minJoinPause; ; pause = min(2*pause, maxJoinPause) {
		shared, err := d.askSettings(ctx)
		var refused *membership.Refusal
		switch {
		case err == nil, errors.As(err, &refused) && refused.Code == http.StatusNotFound: // a master of an earlier version
			if err := shared.Differ(d.cfg.Shared()); err != nil {
				return err
			}
			if !joined {
				ready()
			}
			<-ctx.Done()
			return nil
		case ctx.Err() != nil:
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

func (d *Daemon) askSettings(ctx context.Context) (membership.Shared, error) {
	cert, err := d.creds.node.ForClient(nil)
	if err != nil {
		return nil, err
	}
	return (&membership.Client{Server: d.ownAPI(), CA: d.creds.trust, Cert: cert}).Settings(ctx)
}
