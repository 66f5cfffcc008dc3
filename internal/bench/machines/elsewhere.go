package machines

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/bench/bed"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
	"minik8s/internal/hosts"
)

const (
	lostReplicas = 8 // of a Deployment over two workers, one of which is lost
	losses       = 5
)

// Elsewhere measures how long the replicas of a lost worker take to run on another one, from the moment that their eviction
// is allowed: when the taint is there that they do not tolerate.
func Elsewhere(r *bed.Report) (err error) {
	_, lab, err := newLab()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	m, err := lab.Add("m", 1)
	if err != nil {
		return err
	}
	if err := m.Start("--role=master", "--node-grace-period=3s", "--node-unknown-period=3s", "--node-removal-period=1h"); err != nil {
		return err
	}
	if err := poll(func() bool { return m.Ready(context.Background()) }); err != nil {
		return err
	}
	c, err := m.API()
	if err != nil {
		return err
	}
	var workers []*hosts.Host
	for _, name := range []string{"w1", "w2"} {
		var line string
		if err := poll(func() bool { line, err = m.Ctl("token", "create"); return err == nil }); err != nil {
			return err
		}
		w, err := lab.Add(name, 1)
		if err != nil {
			return err
		}
		if err := w.Start(append(strings.Fields(line)[1:], "--heartbeat-interval=1s")...); err != nil {
			return err
		}
		workers = append(workers, w)
	}
	var took bed.Samples
	for i := range losses {
		one, err := loseOne(c, workers[i%2], workers[(i+1)%2])
		if err != nil {
			return err
		}
		took = append(took, one)
	}
	r.Add("worker killed: its replicas Running elsewhere, p50", bed.Ms(took.P(50)), "ms", "<= 1000 ms", fmt.Sprintf("half of %d replicas, from the taint on", lostReplicas))
	r.Add(fmt.Sprintf("  worst of %d", losses), bed.Ms(took.P(100)), "ms", "", "")
	return nil
}

// loseOne makes a Deployment over two workers, kills one of them, and returns the time from its taint until as many
// replicas run on the other one. Then all is as before.
func loseOne(c *remote.Client, lost, kept *hosts.Host) (time.Duration, error) {
	ctx := context.Background()
	if err := poll(func() bool { return takesPods(c, lost.Name) && takesPods(c, kept.Name) }); err != nil {
		return 0, err
	}
	if _, err := c.Create(ctx, moving(), client.WriteOptions{}); err != nil {
		return 0, err
	}
	if err := poll(func() bool { return runningOn(c, lost.Name)+runningOn(c, kept.Name) == lostReplicas }); err != nil {
		return 0, err
	}
	if err := lost.Cut(); err != nil { // its pods live on, as nobody can know
		return 0, err
	}
	if err := poll(func() bool { return !takesPods(c, lost.Name) }); err != nil {
		return 0, err
	}
	tainted := time.Now()
	if err := poll(func() bool { return runningOn(c, kept.Name) == lostReplicas }); err != nil {
		return 0, err
	}
	took := time.Since(tainted)
	if err := lost.Heal(); err != nil {
		return 0, err
	}
	if _, err := c.Delete(ctx, client.Key{Kind: api.Deployments, Namespace: "default", Name: "moves"}, nil); err != nil {
		return 0, err
	}
	return took, poll(func() bool { return runningOn(c, lost.Name)+runningOn(c, kept.Name) == 0 })
}

// moving is a Deployment whose pods leave a lost node at once.
func moving() *appsv1.Deployment {
	app := map[string]string{"app": "moves"}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "moves"}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(lostReplicas)), Selector: &metav1.LabelSelector{MatchLabels: app},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64),
			Tolerations: []corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64)}},
			Containers: []corev1.Container{{Name: "c", Image: "minik8s/hello", ImagePullPolicy: corev1.PullIfNotPresent}}}}}}
}

// takesPods reports whether a node is ready and has no taint.
func takesPods(c *remote.Client, name string) bool {
	node, err := client.Get[*corev1.Node](context.Background(), c, client.Key{Kind: api.Nodes, Name: name})
	return err == nil && nodeReady(node) && len(node.Spec.Taints) == 0
}

// runningOn counts the pods of the Deployment that run on a node.
func runningOn(c *remote.Client, node string) (n int) {
	pods, _, err := client.All[*corev1.Pod](context.Background(), c, api.Pods,
		client.ListOptions{Namespace: metav1.NamespaceDefault, Labels: labels.SelectorFromSet(labels.Set{"app": "moves"})})
	if err != nil {
		return -1
	}
	for _, p := range pods {
		if p.Spec.NodeName == node && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
			n++
		}
	}
	return n
}
