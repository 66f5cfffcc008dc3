package roles_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// load is clients that ask one address again and again, each time by a new connection.
type load struct {
	cancel  context.CancelFunc
	clients sync.WaitGroup

	mu      sync.Mutex
	answers map[string]int // by who has answered
	asked   []int          // by client
	failed  []string
}

// steady begins with so many clients. Each asks every few milliseconds.
func steady(t *testing.T, url string, clients int) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel, answers: map[string]int{}, asked: make([]int, clients)}
	for i := range clients {
		c := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		l.clients.Go(func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				who, err := ask(c, url)
				l.mu.Lock()
				l.asked[i]++
				if l.answers[who]++; err != nil {
					l.failed = append(l.failed, err.Error())
				}
				l.mu.Unlock()
			}
		})
	}
	t.Cleanup(func() { l.end() })
	return l
}

func ask(c *http.Client, url string) (string, error) {
	resp, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, b)
	}
	return strings.TrimSpace(string(b)), err
}

// seen are the answers until now.
func (l *load) seen() (answers map[string]int, all int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answers = map[string]int{}
	for who, n := range l.answers {
		answers[who] = n
		all += n
	}
	return answers, all
}

func (l *load) end() {
	l.cancel()
	l.clients.Wait()
}

// 20 clients ask a Service all the time, each by new connections, while its Deployment is rolled out twice, scaled up and down. Its
// pods become ready by a probe and wait before they end: not one request fails, and all pods have their turns.
func TestRolloutUnderLoad(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	const clients = 20
	labels := map[string]string{"app": "web"}
	hook := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 2}}}
	web := corev1.Container{Name: "web", Image: "minik8s/hello", ImagePullPolicy: corev1.PullIfNotPresent, Lifecycle: hook,
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(80)}}}}
	p.make(c, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(3)),
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(2))}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(20)), Containers: []corev1.Container{web}}}}})
	p.make(c, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.ServiceSpec{ClusterIP: "10.96.7.8", Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}})
	key := client.Key{Kind: api.Deployments, Namespace: "default", Name: "web"}
	complete := func() bool {
		d, err := client.Get[*appsv1.Deployment](t.Context(), c, key)
		return err == nil && d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == *d.Spec.Replicas &&
			d.Status.Replicas == *d.Spec.Replicas && d.Status.AvailableReplicas == *d.Spec.Replicas
	}
	p.eventually("available", complete)
	p.eventually("answered", func() bool { return answer("10.96.7.8") != "" })
	l := steady(t, "http://10.96.7.8/", clients)
	for _, change := range []string{
		`{"spec":{"template":{"metadata":{"annotations":{"round":"1"}}}}}`,
		`{"spec":{"replicas":5}}`,
		`{"spec":{"replicas":2,"template":{"metadata":{"annotations":{"round":"2"}}}}}`,
	} {
		if _, err := c.Patch(t.Context(), key, client.Patch{Type: types.MergePatchType, Data: []byte(change)}, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		p.eventually("complete after "+change, complete)
		d, err := client.Get[*appsv1.Deployment](t.Context(), c, key)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := l.seen()
		p.eventually("all pods have answered after "+change, func() bool {
			current, _ := l.seen()
			n := 0
			for who, count := range current {
				if count > before[who] {
					n++
				}
			}
			return n >= int(*d.Spec.Replicas)
		})
	}
	p.eventually("the old ones have gone", func() bool {
		list, err := c.List(t.Context(), api.Pods, client.ListOptions{Namespace: "default"})
		return err == nil && len(list.Items) == 2
	})
	l.end()
	answers, all := l.seen()
	t.Logf("%d requests, answered by %d pods", all, len(answers))
	if len(l.failed) > 0 {
		t.Errorf("%d of %d requests have failed: %q", len(l.failed), all, l.failed[:min(5, len(l.failed))])
	}
	if len(answers) < 3+3+2+2 { // of three generations, with two more by scaling
		t.Errorf("only these have answered: %v", answers)
	}
	for i, n := range l.asked {
		if n == 0 {
			t.Errorf("client %d has not asked", i)
		}
	}
}
