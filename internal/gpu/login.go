package gpu

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/aggregation"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/slurm/login"
)

const (
	// loginsAtOnce bounds the logins that are under way on a master.
	loginsAtOnce = 16
	// answersLimit bounds what a person answers, in bytes.
	answersLimit = 64 << 10
)

// logins are those under way, each with a person who answers, by an id that nobody else can guess. They are kept in memory alone.
type logins struct {
	mu    sync.Mutex
	under map[string]*dialogue
}

// dialogue is one login: the host's questions one way, the person's answers the other.
type dialogue struct {
	cluster   string // NAMESPACE/NAME
	questions chan login.Question
	answers   chan []string
	ended     chan error
}

func (l *logins) find(id, cluster string) *dialogue {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.under[id]; d != nil && d.cluster == cluster {
		return d
	}
	return nil
}

// begin starts a login, which ends by itself; nil if there are too many.
func (l *logins) begin(cluster string, open func(context.Context, login.Ask) error) (string, *dialogue) {
	d := &dialogue{cluster: cluster, questions: make(chan login.Question), answers: make(chan []string, 1), ended: make(chan error, 1)}
	id := rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.under) >= loginsAtOnce {
		return "", nil
	}
	if l.under == nil {
		l.under = map[string]*dialogue{}
	}
	l.under[id] = d
	go func() {
		// Not the request's context: the login goes on between two requests.
		err := open(context.Background(), d.ask)
		l.mu.Lock()
		delete(l.under, id)
		l.mu.Unlock()
		d.ended <- err
	}()
	return id, d
}

func (d *dialogue) ask(ctx context.Context, q login.Question) ([]string, error) {
	select { // an answer to nothing
	case <-d.answers:
	default:
	}
	select {
	case d.questions <- q:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case a := <-d.answers:
		return a, nil
	case <-ctx.Done():
		return nil, errors.New("nobody answered in time")
	}
}

// login opens the connection to a cluster, as a dialogue of requests: each answer is a question of the host, until the connection
// stands. Where nobody has to answer it is one request.
func (s *Server) login(w http.ResponseWriter, r *aggregation.Connected) error {
	c := r.Object.(*minik8s.SlurmCluster)
	if done, err := s.forCluster(w, r); done {
		return err
	}
	said, err := answersIn(w, r)
	if err != nil {
		return err
	}
	name, id := c.Namespace+"/"+c.Name, said.ID
	var d *dialogue
	if id == "" {
		at := place{c.Namespace, c.Name, said.Secret}
		if id, d = s.logins.begin(name, func(ctx context.Context, ask login.Ask) error { return s.connect(ctx, at, ask) }); d == nil {
			return apierrors.NewTooManyRequests(fmt.Sprintf("%d logins are under way", loginsAtOnce), 10)
		}
	} else {
		if d = s.logins.find(id, name); d == nil {
			return apierrors.NewBadRequest("id: there is no such login under way: begin again")
		}
		select {
		case d.answers <- said.Answers:
		default:
			return apierrors.NewBadRequest("id: the login waits for no answer at the moment")
		}
	}
	var step minik8s.SlurmLoginStep
	select {
	case q := <-d.questions:
		step = stepOf(id, q)
	case err = <-d.ended:
		step.Connected = true
	case <-r.Context().Done():
		return nil // the client has disconnected
	}
	var refused *login.RefusedError
	switch {
	case errors.As(err, &refused):
		return apierrors.NewBadRequest(refused.Error())
	case err != nil:
		return unavailable(err)
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(step)
}

func stepOf(id string, q login.Question) minik8s.SlurmLoginStep {
	step := minik8s.SlurmLoginStep{ID: id, Host: q.Host, Instruction: q.Instruction}
	for _, p := range q.Prompts {
		step.Prompts = append(step.Prompts, minik8s.SlurmLoginPrompt(p))
	}
	return step
}

// connect opens a connection and notes in the cluster's status how that went.
func (s *Server) connect(ctx context.Context, at place, ask login.Ask) error {
	cluster, obj, err := s.links.For(ctx, at)
	if err == nil {
		err = cluster.Login(ctx, ask)
	}
	if err == nil {
		err = cluster.Open(ctx)
	}
	if obj == nil {
		return err
	}
	report(ctx, s.client, s.log, obj, err, nil)
	return err
}

func answersIn(w http.ResponseWriter, r *aggregation.Connected) (*minik8s.SlurmLoginAnswers, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, io.NopCloser(newPatientBody(r.Body, w)), answersLimit))
	if err != nil {
		return nil, apierrors.NewBadRequest("the body: " + err.Error())
	}
	said := &minik8s.SlurmLoginAnswers{}
	if len(body) == 0 {
		return said, nil
	}
	// The error of the decoder may show a part of the body, and that may be a password.
	if json.Unmarshal(body, said) != nil {
		return nil, apierrors.NewBadRequest(`the body: expected JSON, as in {"id": "...", "answers": ["123456"]}, or nothing`)
	}
	return said, nil
}
