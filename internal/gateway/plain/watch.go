package plain

import (
	"errors"
	"net"
	"sync"
	"time"

	"minik8s/internal/idle"
)

// watch looks whether a client goes while it waits for an answer, and bounds how long it waits. Most answers come before it
// begins.
type watch struct {
	c     *client
	timer *time.Timer
	on    bool
	ended chan struct{}
	up    *idle.Conn
	left  bool // the client has gone

	mu       sync.Mutex
	answered bool // the head of the answer is there: its body may take as long as it likes
	limited  bool // the endpoint's connection has a deadline
}

func (w *watch) init(c *client) {
	w.c, w.ended = c, make(chan struct{}, 1)
}

func (w *watch) begin(u *idle.Conn) {
	if w.on {
		return
	}
	w.up, w.on, w.answered, w.limited = u, true, false, false
	if w.timer == nil {
		w.timer = time.AfterFunc(watchWait, w.look)
		return
	}
	w.timer.Reset(watchWait)
}

// look reads what the client sends next: usually nothing, until end stops it.
func (w *watch) look() {
	c := w.c
	defer func() { w.ended <- struct{}{} }()
	w.limit()
	if c.from > 0 || c.to < len(c.in) {
		c.compact()
		n, err := c.conn.Read(c.in[c.to:])
		c.to += n
		var timeout net.Error
		if err != nil && n == 0 && !(errors.As(err, &timeout) && timeout.Timeout()) {
			w.left = true
			w.up.Close()
		}
	}
}

// limit sets the time until which the head of the answer has to be there.
func (w *watch) limit() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.answered {
		_ = w.up.SetReadDeadline(time.Now().Add(w.c.s.cfg.AnswerTime - watchWait))
		w.limited = true
	}
}

// answer says that the head of the answer is there.
func (w *watch) answer() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answered = true; w.limited {
		_ = w.up.SetReadDeadline(time.Time{})
		w.limited = false
	}
}

// end stops the watch. After it the buffer is the client's own again.
func (w *watch) end() {
	if !w.on {
		return
	}
	w.on = false
	if !w.timer.Stop() {
		_ = w.c.conn.SetReadDeadline(time.Unix(1, 0))
		<-w.ended
	}
}
