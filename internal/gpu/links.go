package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"path"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/gpu/plan"
	"minik8s/internal/slurm"
	"minik8s/internal/slurm/login"
)

// idleLink is how long a connection stays that nobody uses.
const idleLink = 5 * time.Minute

// Links are the connections to Slurm clusters, one for each cluster and login, however many Secrets say that login.
type Links struct {
	client client.Interface
	dialer login.Dialer
	log    *slog.Logger

	mu   sync.Mutex
	open map[place]*open
	id   string // of this minik8s cluster
}

// place is a cluster as a login sees it: a Secret's name, "" for the cluster's own.
type place struct{ namespace, cluster, secret string }

// whole is the cluster, whoever logs in.
func (at place) whole() place { return place{namespace: at.namespace, cluster: at.cluster} }

// open is a connection. Places of one cluster whose Secrets say the same have one together: jobs of the seed system X each have a Secret
// of their own, and a cluster is not to be asked once for each of them.
type open struct {
	target  login.Target
	folder  string
	cluster *slurm.Cluster
	places  map[place]bool
	idle    *time.Timer
	users   int // who hold it: it is not idle

	leads *follower // the one that looks for all places
	asked time.Time // when Slurm's controller was asked
}

// NewLinks makes the connections' keeper; c reads SlurmClusters and Secrets. A nil dialer is the machine's network.
func NewLinks(c client.Interface, d login.Dialer, log *slog.Logger) *Links {
	return &Links{client: c, dialer: d, log: log, open: map[place]*open{}}
}

// Problem is why a cluster cannot be used: a reason for its condition Connected, and a message.
type Problem struct {
	Reason, Message string
	Key             *minik8s.PresentedKey // that a host showed and nobody has confirmed
	err             error
}

func (p *Problem) Error() string { return p.Message }

func (p *Problem) Unwrap() error { return p.err }

// For returns the connection for a SlurmCluster, by a Secret or, if that is "", the cluster's own. It does not wait until it
// stands. The error is a *Problem if the objects do not suffice.
func (l *Links) For(ctx context.Context, at place) (*slurm.Cluster, *minik8s.SlurmCluster, error) {
	obj, err := client.Get[*minik8s.SlurmCluster](ctx, l.client, client.Key{Kind: api.SlurmClusters, Namespace: at.namespace, Name: at.cluster})
	if apierrors.IsNotFound(err) {
		return nil, nil, &Problem{Reason: "ClusterMissing", Message: fmt.Sprintf("there is no SlurmCluster %s/%s", at.namespace, at.cluster), err: err}
	}
	if err != nil {
		return nil, nil, err
	}
	id, err := l.identity(ctx)
	if err != nil {
		return nil, nil, err
	}
	target, err := l.target(ctx, obj, &obj.Spec.SSHHost, cmp.Or(at.secret, obj.Spec.LoginSecret))
	if err != nil {
		return nil, obj, err
	}
	if j := obj.Spec.Jump; j != nil {
		if target.Jump, err = l.target(ctx, obj, j, cmp.Or(j.LoginSecret, at.secret, obj.Spec.LoginSecret)); err != nil {
			return nil, obj, err
		}
	}
	// Clusters of minik8s that use one account do not meet, nor do accounts that share a folder.
	folder := path.Join(cmp.Or(obj.Spec.Folder, plan.DefaultFolder), id)
	if path.IsAbs(folder) {
		folder += "-" + url.PathEscape(target.User)
	}
	return l.get(at, *target, folder), obj, nil
}

// standing is a connection that was made before; nil if there is none. It is for what has to be cleared up when the objects that
// say how to log in are gone, as when their namespace is deleted.
func (l *Links) standing(at place) *slurm.Cluster {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.open[at]; o != nil {
		o.idle.Reset(idleLink) // nobody could log in again
		return o.cluster
	}
	return nil
}

func (l *Links) get(at place, target login.Target, folder string) *slurm.Cluster {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.open[at]; o != nil {
		if o.is(&target, folder) {
			o.idle.Reset(idleLink)
			return o.cluster
		}
		l.leave(at, o)
	}
	for other, o := range l.open {
		if other.whole() == at.whole() && o.is(&target, folder) {
			o.places[at], l.open[at] = true, o
			o.idle.Reset(idleLink)
			return o.cluster
		}
	}
	o := &open{target: target, folder: folder, cluster: slurm.New(login.New(target, l.dialer, l.log), folder), places: map[place]bool{at: true}}
	o.idle = time.AfterFunc(idleLink, func() { l.expire(at, o) })
	l.open[at] = o
	return o.cluster
}

func (o *open) is(target *login.Target, folder string) bool {
	return o.target.Equal(target) && o.folder == folder
}

// lead returns the follower that looks for all places of a follower's connection: this one, if there is none.
func (l *Links) lead(f *follower) *follower {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.open[f.at]
	if o == nil {
		return f
	}
	if o.leads == nil {
		o.leads = f
	}
	return o.leads
}

// resign has another follower look for the others.
func (l *Links) resign(f *follower) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.open[f.at]; o != nil && o.leads == f {
		o.leads = nil
	}
}

// sharing are the places that have a place's connection.
func (l *Links) sharing(at place) map[place]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.open[at]; o != nil {
		return maps.Clone(o.places)
	}
	return map[place]bool{at: true}
}

// asked reports whether Slurm's controller is asked now over a place's connection: may decides by when it was asked last.
func (l *Links) asked(at place, may func(last time.Time) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.open[at]
	if o == nil || !may(o.asked) {
		return false
	}
	o.asked = time.Now()
	return true
}

// hold keeps the connection of a place from being idle until it is released: for what lasts.
func (l *Links) hold(at place) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.open[at]
	if o == nil {
		return func() {}
	}
	o.users++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if o.users--; len(o.places) > 0 {
			o.idle.Reset(idleLink)
		}
	}
}

// expire ends a connection that nobody uses. One that a person opened stays as long as its cluster is there to be used.
func (l *Links) expire(at place, o *open) {
	keep := false
	if o.cluster.ByPerson() {
		_, err := client.Get[*minik8s.SlurmCluster](context.Background(), l.client, client.Key{Kind: api.SlurmClusters, Namespace: at.namespace, Name: at.cluster})
		keep = !apierrors.IsNotFound(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(o.places) == 0:
	case keep, o.users > 0:
		o.idle.Reset(idleLink)
	default:
		for at := range o.places {
			l.leave(at, o)
		}
	}
}

// leave takes a connection from a place, and closes it if that was the last; mu is held.
func (l *Links) leave(at place, o *open) {
	delete(l.open, at)
	delete(o.places, at)
	if o.leads != nil && o.leads.at == at {
		o.leads = nil
	}
	if len(o.places) == 0 {
		o.idle.Stop()
		o.cluster.Close()
	}
}

// Close closes all connections.
func (l *Links) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, o := range l.open {
		l.leave(at, o)
	}
}

// identity tells this minik8s cluster from others: the UID of its first namespace.
func (l *Links) identity(ctx context.Context) (string, error) {
	l.mu.Lock()
	id := l.id
	l.mu.Unlock()
	if id != "" {
		return id, nil
	}
	ns, err := client.Get[*corev1.Namespace](ctx, l.client, client.Key{Kind: api.Namespaces, Name: metav1.NamespaceSystem})
	if err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.id = string(ns.UID)[:8]
	return l.id, nil
}

// target is a host with what its Secret says. Where a person logs in there need be no Secret.
func (l *Links) target(ctx context.Context, obj *minik8s.SlurmCluster, h *minik8s.SSHHost, secret string) (*login.Target, error) {
	missing := func(format string, args ...any) error {
		return &Problem{Reason: minik8s.SlurmSecretMissing, Message: fmt.Sprintf(format, args...)}
	}
	var data map[string][]byte
	switch {
	case secret != "":
		s, err := client.Get[*corev1.Secret](ctx, l.client, client.Key{Kind: api.Secrets, Namespace: obj.Namespace, Name: secret})
		if apierrors.IsNotFound(err) {
			return nil, missing("there is no Secret %s/%s to log in with", obj.Namespace, secret)
		}
		if err != nil {
			return nil, err
		}
		data = s.Data
	case !h.Interactive:
		return nil, missing("neither the job nor SlurmCluster %s/%s names a Secret to log in with: set loginSecret", obj.Namespace, obj.Name)
	}
	port := h.Port
	if port == 0 {
		port = 22
	}
	user := cmp.Or(h.User, string(data[corev1.BasicAuthUsernameKey]))
	if secret != h.LoginSecret { // somebody else than the cluster's own user
		user = cmp.Or(string(data[corev1.BasicAuthUsernameKey]), h.User)
	}
	t := &login.Target{
		Addr: net.JoinHostPort(h.Host, strconv.Itoa(int(port))), User: user,
		Password: string(data[corev1.BasicAuthPasswordKey]), Key: data[corev1.SSHAuthPrivateKey], Passphrase: string(data["passphrase"]),
		HostKeys: h.HostKeys, Interactive: h.Interactive,
	}
	switch {
	case t.User == "" && secret == "":
		return nil, missing("nobody says who logs in at %s: set user", h.Host)
	case t.User == "":
		return nil, missing("nobody says who logs in at %s: set user, or username in the Secret %s/%s", h.Host, obj.Namespace, secret)
	case t.Password == "" && len(t.Key) == 0 && !h.Interactive:
		return nil, missing("the Secret %s/%s has neither ssh-privatekey nor password", obj.Namespace, secret)
	}
	return t, nil
}

// choose finds the cluster of a job.
func (l *Links) choose(ctx context.Context, obj *minik8s.GpuJob) (string, error) {
	list, err := l.client.List(ctx, api.SlurmClusters, client.ListOptions{Namespace: obj.Namespace})
	if err != nil {
		return "", err
	}
	var names []string
	for _, c := range list.Items {
		names = append(names, c.GetName())
	}
	name, err := plan.Choose(obj, names)
	if err != nil {
		return "", &Problem{Reason: "ClusterMissing", Message: err.Error()}
	}
	return name, nil
}

// problem names what is wrong with a connection; nil if the error is another.
func problem(err error) *Problem {
	var p *Problem
	var key *login.HostKeyError
	var refused *login.RefusedError
	var credential *login.CredentialError
	var needed *login.NeededError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p):
		return p
	case errors.As(err, &key) && key.Known:
		return &Problem{Reason: minik8s.SlurmHostKeyChanged, Message: key.Error(), err: err}
	case errors.As(err, &key):
		return &Problem{Reason: minik8s.SlurmHostKeyUnknown, err: err,
			Message: key.Error() + ": compare it with what the centre publishes, and confirm it with `minik8sd ctl gpu trust`",
			Key:     &minik8s.PresentedKey{Host: key.Host, Key: key.Key, Fingerprint: key.Fingerprint}}
	case errors.As(err, &refused):
		return &Problem{Reason: minik8s.SlurmLoginRefused, Message: refused.Error(), err: err}
	case errors.As(err, &credential):
		return &Problem{Reason: minik8s.SlurmLoginRefused, Message: credential.Error(), err: err}
	case errors.As(err, &needed):
		return &Problem{Reason: minik8s.SlurmLoginNeeded, Message: needed.Error() + ": a person has to, with `minik8sd ctl gpu login`", err: err}
	case errors.Is(err, slurm.ErrNoSlurm):
		return &Problem{Reason: minik8s.SlurmCommandsMissing, Message: err.Error(), err: err}
	}
	return &Problem{Reason: minik8s.SlurmUnreachable, Message: err.Error(), err: err}
}
