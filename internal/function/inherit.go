package function

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
)

// headerMaster of an answer to who asks for a result that is not there yet says which master has the call under way: the one that answers.
const headerMaster = "X-Minik8s-Master"

const (
	// askLimit is how long a master may take to say whether it has a call under way. One that takes longer is taken for lost.
	askLimit = 3 * time.Second
	// lostFor is how long a master that could not be asked is not asked again.
	lostFor = 3 * time.Second
	// mostAsking is how many calls are asked after at once.
	mostAsking = 16
)

// The pauses between questions after one call.
const (
	minAskAgain = 200 * time.Millisecond
	maxAskAgain = 5 * time.Second
)

// inherit goes on with a claimed call that runs, as the store says: another master has begun it, or this one before it was started again. It is made
// again when nobody has it under way any more. A master that does not lead any more, and is alive, finishes what it has begun: it is asked, and the call
// would run twice otherwise. One that cannot be asked is taken for lost.
func (f *Controller) inherit(ctx context.Context, c *minik8s.FunctionCall, q question) {
	for pause := minAskAgain; ; pause = min(2*pause, maxAskAgain) {
		now, err := client.Get[*minik8s.FunctionCall](ctx, f.client, client.KeyOf(c)) // the informer may show its end later
		switch {
		case apierrors.IsNotFound(err), err == nil && (now.UID != c.UID || now.Status.State != minik8s.CallRunning):
			f.server.unclaim(callKey(c))
			return
		case err == nil && !f.server.elsewhere(ctx, now):
			if f.never(q.function) {
				lost := make(chan result, 1)
				lost <- failed(minik8s.FaultPlatform, http.StatusBadGateway, "the master that had the call was lost; the function is not to be called again (retry: Never)")
				f.carry(ctx, now, q, lost)
				return
			}
			next := now.DeepCopy()
			next.Status.Master = f.server.cfg.Master
			// The write is guarded: of two masters that both hold themselves for the leader one goes on.
			if obj, err := f.client.Update(ctx, next, client.WriteOptions{Subresource: api.StatusSubresource}); err == nil {
				f.carry(ctx, obj.(*minik8s.FunctionCall), q, nil)
				return
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done(): // deleted
		}
		if ctx.Err() != nil || f.dispatch.ended() {
			f.server.unclaim(callKey(c))
			return
		}
	}
}

// elsewhere asks the master that a running call names whether it has it under way.
func (s *Server) elsewhere(ctx context.Context, c *minik8s.FunctionCall) bool {
	master := c.Status.Master
	if master == "" || master == s.cfg.Master {
		return false // this process does not have it, or the claim would have failed
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return true
	}
	s.mu.Lock()
	lost := time.Since(s.lost[master]) < lostFor
	s.mu.Unlock()
	if lost {
		return false
	}
	has, err := s.ask(ctx, master, c)
	var gone *goneError
	if err != nil && !errors.As(err, &gone) {
		return true // it did not say: it is asked again
	}
	if err != nil && ctx.Err() == nil {
		s.cfg.Log.Warn("a master that has begun calls cannot be asked, and is taken for lost: its calls are made again", "master", master, "error", err)
		s.mu.Lock()
		s.lost[master] = time.Now()
		s.mu.Unlock()
	}
	return has
}

// goneError says that a master does not answer, or is none any more.
type goneError struct{ err error }

func (e *goneError) Error() string { return e.err.Error() }
func (e *goneError) Unwrap() error { return e.err }

// ask asks a master whether it has a call. An error is a *goneError, or says nothing of the master.
func (s *Server) ask(ctx context.Context, master string, c *minik8s.FunctionCall) (has bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	base, ask, err := s.cfg.Other(ctx, master)
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, ErrNoMaster):
		return false, &goneError{err}
	case err != nil:
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+pathOf(api.FunctionCalls, callKey(c), minik8s.FunctionResultSubresource)+"?"+forwardedBy+"="+s.cfg.Master, nil)
	if err != nil {
		return false, err
	}
	resp, err := ask.RoundTrip(req)
	if err != nil {
		return false, &goneError{unreachable(master, err)}
	}
	defer resp.Body.Close()                                 //nolint:errcheck // it was only read
	io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody)) //nolint:errcheck // so that the connection can be used again
	answered := resp.Header.Get(headerCall) != ""
	switch {
	case answered, resp.StatusCode == http.StatusNotFound:
		return resp.Header.Get(headerMaster) == master, nil
	case resp.StatusCode >= http.StatusInternalServerError:
		return false, &goneError{unreachable(master, fmt.Errorf("it answers %s", resp.Status))}
	}
	return false, unreachable(master, fmt.Errorf("it answers %s", resp.Status))
}

// has reports whether this process has a call under way.
func (s *Server) has(key loop.Key, uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept[key]
	return k != nil && k.uid == uid
}
