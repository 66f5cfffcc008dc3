package plain

import (
	"cmp"
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"minik8s/internal/gateway/backends"
	"minik8s/internal/gateway/pages"
	"minik8s/internal/idle"
)

// ask sends the request to the endpoints in turn until the first bytes of an answer are in s.in. u is nil if none has
// answered, or the client has gone.
func (c *client) ask(s *scratch, turn *backends.Turn, method string) (u *idle.Conn, e *backends.Endpoint, how pages.Failure) {
	begin, last := time.Time{}, error(nil)
	defer func() {
		if u == nil && !c.watch.left {
			c.s.cfg.Log.Debug("no endpoint has answered a plain request", "method", method, "error", last)
		}
	}()
	for e = turn.Next(); e != nil; {
		conns, _ := e.Kept.(*idle.Pool)
		for fresh := false; ; fresh = true {
			u, reused, err := conns.Get(context.Background(), fresh)
			if err != nil {
				e.Failed()
				if how, last = pages.Broken, err; backends.TimedOut(err) {
					how = pages.Unreached
				}
				if begin.IsZero() {
					begin = time.Now()
				}
				break
			}
			if reused && !u.Alive() {
				u.Close()
				continue
			}
			if last = c.exchange(s, u); last == nil {
				e.Worked()
				return u, e, 0
			}
			c.watch.end()
			u.Close()
			if c.watch.left {
				return nil, nil, 0
			}
			if backends.TimedOut(last) { // it may be at work, and the client has waited long enough
				if errors.Is(last, syscall.ETIMEDOUT) { // or its machine is gone: nothing was acknowledged
					e.Failed()
				}
				return nil, nil, pages.Unanswered
			}
			if !reused {
				e.Failed()
			}
			how = pages.Broken
			if !backends.Idempotent(method) {
				return nil, nil, how
			}
			if !reused {
				break
			}
		}
		if !begin.IsZero() && time.Since(begin) > c.s.cfg.ReachTime {
			return nil, nil, how
		}
		e = turn.Next()
	}
	return nil, nil, how
}

// exchange sends the request and waits for the first bytes of the answer.
func (c *client) exchange(s *scratch, u *idle.Conn) error {
	if _, err := u.Write(s.out); err != nil {
		return err
	}
	c.watch.begin(u)
	n, err := u.Read(s.in)
	if n == 0 {
		return cmp.Or(err, io.ErrNoProgress)
	}
	s.in = s.in[:n]
	return nil
}
