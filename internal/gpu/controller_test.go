package gpu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/controller/loop"
	"minik8s/internal/events"
	"minik8s/internal/gpu/results"
	"minik8s/internal/slurm/batch"
)

// hosts is a network where the host "hangs" does not answer until the test ends, and all others refuse a connection.
type hosts struct{ end chan struct{} }

func (h hosts) DialContext(_ context.Context, _, addr string) (net.Conn, error) {
	if strings.HasPrefix(addr, "hangs:") {
		<-h.end
	}
	return nil, errors.New("connection refused")
}

// start runs the controller with two SlurmClusters, hangs and refuses.
func start(t *testing.T) (*ct.Cluster, *Controller) {
	c := ct.New(t)
	log := slog.New(slog.DiscardHandler)
	as := c.As(ControllerName)
	record := events.New(as, ControllerName, "", log)
	go record.Run(c.Context())                                                                   //nolint:errcheck // it ends with the test
	ct.Create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}) // whose UID is the cluster's
	ct.Create(c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "login"},
		Data: map[string][]byte{"username": []byte("u"), "password": []byte("p")}})
	for _, name := range []string{"hangs", "refuses"} {
		ct.Create(c, &minik8s.SlurmCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: minik8s.SlurmClusterSpec{SSHHost: minik8s.SSHHost{Host: name, LoginSecret: "login", HostKeys: []string{"SHA256:" + strings.Repeat("A", 43)}}}})
	}
	network := hosts{make(chan struct{})}
	t.Cleanup(func() { close(network.end) })
	g := NewController(as, c.Views(), record, Config{Links: NewLinks(as, network, log), Store: results.New(t.TempDir()), Master: "m", Log: log})
	c.Start(g.Run)
	return c, g
}

func create(c *ct.Cluster, name, cluster string, dependsOn ...string) {
	j := &minik8s.GpuJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: minik8s.GpuJobSpec{Cluster: cluster, RunScripts: []string{"true"}}}
	for _, d := range dependsOn {
		j.Spec.DependsOn = append(j.Spec.DependsOn, minik8s.GpuJobDependency{Name: d})
	}
	ct.Create(c, j)
}

// says waits until a job says why it is not submitted.
func says(c *ct.Cluster, name, reason, text string) {
	ct.Until(c, name+": "+reason, api.GpuJobs, func(list []*minik8s.GpuJob) bool {
		for _, j := range list {
			x := apimeta.FindStatusCondition(j.Status.Conditions, minik8s.GpuJobSubmitted)
			if j.Name == name && x != nil && x.Reason == reason && strings.Contains(x.Message, text) {
				return true
			}
		}
		return false
	})
}

// However many jobs wait for a cluster that does not answer, those of others are seen to.
func TestHangingCluster(t *testing.T) {
	c, _ := start(t)
	for i := range 2 * workers {
		create(c, fmt.Sprint("waits-", i), "hangs")
	}
	create(c, "quick", "refuses")
	says(c, "quick", "SubmissionFailed", "connection refused")
}

// Jobs that wait for each other say so, all of them, whichever was made last; and no more when one is deleted.
func TestDependencyCircle(t *testing.T) {
	c, _ := start(t)
	create(c, "a", "refuses", "b")
	create(c, "b", "refuses", "c")
	create(c, "outside", "refuses", "a")
	says(c, "a", "SubmissionFailed", "")
	create(c, "c", "refuses", "a")
	says(c, "a", "DependencyCycle", "a -> b -> c -> a")
	says(c, "b", "DependencyCycle", "b -> c -> a -> b")
	says(c, "c", "DependencyCycle", "c -> a -> b -> c")
	says(c, "outside", "SubmissionFailed", "")
}

// However many results are to come from a cluster that does not answer, those of others are fetched.
func TestHangingTransfers(t *testing.T) {
	c, g := start(t)
	fetch := func(cluster string) error {
		return g.fetch(c.Context(), place{"default", cluster, ""}, newTransfer("u", batch.Layout{}, g.store), 0)
	}
	for range 2 * transfers {
		go fetch("hangs") //nolint:errcheck // it ends with the test
	}
	for len(g.places(place{"default", "hangs", ""})) < transfers { // until they are under way
		time.Sleep(time.Millisecond)
	}
	if err := fetch("refuses"); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
}

func TestTurns(t *testing.T) {
	at, other := place{cluster: "a"}, place{cluster: "b"}
	job := func(name string) loop.Key { return loop.Key{Namespace: "default", Name: name} }
	turns := newTurns(2)
	for _, x := range []struct {
		at   place
		job  string
		want bool
	}{{at, "1", true}, {at, "2", true}, {at, "3", false}, {at, "4", false}, {at, "3", false}, {other, "5", true}} {
		if got := turns.take(x.at, job(x.job)); got != x.want {
			t.Errorf("job %s of %s: %v", x.job, x.at.cluster, got)
		}
	}
	if next := turns.leave(at); len(next) != 1 || next[0].Name != "3" || !turns.take(at, next[0]) {
		t.Errorf("it is the turn of %v", next)
	}
	for _, name := range []string{"6", "7"} {
		if turns.take(at, job(name)) {
			t.Errorf("there is a place for %s", name)
		}
	}
	if next := turns.leave(at); len(next) != 1 || next[0].Name != "4" { // which is gone, and so takes no turn
		t.Errorf("it is the turn of %v", next)
	}
	if next := turns.leave(at); len(next) != 2 || next[0].Name != "6" || next[1].Name != "7" {
		t.Errorf("nobody is left to call the others: %v", next)
	}
	turns.leave(other)
	if len(turns.taken)+len(turns.later) != 0 {
		t.Errorf("%d clusters have turns that nobody has, %d jobs wait", len(turns.taken), len(turns.later))
	}
}

// Secrets that say the same login have one connection, whose places are looked after together by one follower; when that cannot log in any
// more another one does.
func TestSecretsThatSayTheSame(t *testing.T) {
	c, g := start(t)
	secret := func(name, password string) place {
		ct.Create(c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Data: map[string][]byte{"username": []byte("u"), "password": []byte(password)}})
		return place{"default", "refuses", name}
	}
	a, b, other := secret("a", "1"), secret("b", "1"), secret("other", "2")
	open := map[place]any{}
	for _, at := range []place{a, b, other} {
		cluster, _, err := g.links.For(c.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		open[at] = cluster
	}
	if open[a] != open[b] || open[a] == open[other] {
		t.Errorf("the connections of two equal logins and another one: %v", open)
	}
	first, second := &follower{g: g, at: a}, &follower{g: g, at: b}
	if g.links.lead(second) != second || g.links.lead(first) != second || len(g.links.sharing(b)) != 2 || !g.links.sharing(b)[a] {
		t.Error("one follower does not look for both")
	}
	if alone := (&follower{g: g, at: other}); g.links.lead(alone) != alone || len(g.links.sharing(other)) != 1 {
		t.Error("another login is looked after with them")
	}
	first.forget([]batch.Mark{{UID: "u"}})
	first.soon = true
	first.hand(second)
	if len(second.done) != 1 || !second.soon || len(first.done) != 0 || first.soon {
		t.Errorf("what is said to one follower does not reach the other: %+v", second)
	}
	last := time.Time{}
	for i, want := range []bool{true, false} {
		if got := g.links.asked([]place{a, b}[i], func(at time.Time) bool { last = at; return at.IsZero() }); got != want {
			t.Errorf("question %d: %v", i, got)
		}
	}
	if last.IsZero() {
		t.Error("each place asks by itself")
	}

	ct.Change(c, api.Secrets, "b", func(s *corev1.Secret) { s.Data["password"] = []byte("2") })
	if now, _, err := g.links.For(c.Context(), b); err != nil || now != open[other] {
		t.Errorf("a Secret that has changed: %v", err)
	}
	if g.links.lead(first) != first || len(g.links.sharing(a)) != 1 {
		t.Error("nobody looks for the one that is left")
	}
	g.links.resign(first)
	if g.links.lead(second) == second {
		t.Error("two look for the others")
	}
	g.links.mu.Lock()
	o := g.links.open[a]
	g.links.mu.Unlock()
	g.links.expire(a, o)
	if g.links.standing(a) != nil || g.links.standing(b) == nil {
		t.Error("the connection that nobody uses is the other one")
	}
}
