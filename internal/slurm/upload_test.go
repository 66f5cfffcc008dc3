package slurm_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"minik8s/internal/slurm"
	"minik8s/internal/slurm/login"
	"minik8s/internal/slurm/slurmtest"
)

// slow is a way to a login node on which answers can be held up.
type slow struct {
	*slurmtest.Cluster
	answers sync.Mutex
	sent    atomic.Int64
}

func (s *slow) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := s.Cluster.DialContext(ctx, network, addr)
	return &slowConn{conn, s}, err
}

type slowConn struct {
	net.Conn
	s *slow
}

func (c *slowConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.s.answers.Lock()
	defer c.s.answers.Unlock()
	return n, err
}

func (c *slowConn) Write(b []byte) (int, error) {
	c.s.sent.Add(int64(len(b)))
	return c.Conn.Write(b)
}

// TestUpload sends many packets before the first is answered, and leaves nothing of an upload that breaks.
func TestUpload(t *testing.T) {
	s := &slow{Cluster: slurmtest.Start(t, slurmtest.Options{})}
	node := login.New(login.Target{Addr: s.Addr, User: s.User, Key: s.Key, HostKeys: []string{s.HostKey}}, s, slog.New(slog.DiscardHandler))
	b := &bed{Cluster: slurm.New(node, "x"), t: t, s: s.Cluster, ctx: t.Context()}
	t.Cleanup(b.Close)
	j := b.job("sources")
	left := func() string { return b.s.Do("ls '" + j.Layout.Base + "/jobs'") }
	text := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
	err := b.Upload(b.ctx, j.Layout, func(w io.Writer) error {
		s.answers.Lock()
		from, result := s.sent.Load(), make(chan error, 1)
		go func() {
			var err error
			for rest := text; err == nil && len(rest) > 0; rest = rest[min(512, len(rest)):] { // as tar does
				_, err = w.Write(rest[:min(512, len(rest))])
			}
			result <- err
		}()
		for end := time.Now().Add(20 * time.Second); s.sent.Load()-from < 8*32<<10; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("only %d bytes are sent without an answer", s.sent.Load()-from)
				break
			}
		}
		s.answers.Unlock()
		return <-result
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.s.Do("wc -c <'" + j.Layout.Folder() + ".sources.tar'"); !strings.Contains(got, "1048576") {
		t.Error(got)
	}
	before := left()

	ctx, cancel := context.WithCancel(b.ctx)
	mine := errors.New("it broke off")
	for what, write := range map[string]func(io.Writer) error{
		"its source fails": func(w io.Writer) error {
			w.Write(text) //nolint:errcheck // it fails below
			return mine
		},
		"cancelled": func(w io.Writer) error {
			cancel()
			for {
				if _, err := w.Write(text); err != nil {
					return err
				}
			}
		},
	} {
		at, want := b.ctx, mine
		if what == "cancelled" {
			at, want = ctx, context.Canceled
		}
		if err := b.Upload(at, j.Layout, write); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
		if got := left(); got != before {
			t.Errorf("%s: it left %s", what, got)
		}
	}
}
