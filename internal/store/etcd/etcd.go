package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"minik8s/internal/store"
	"minik8s/internal/store/etcd/space"
)

// Config is how to open the store.
type Config struct {
	Dir  string // created if it does not exist
	Name string // of the member, unique among the members; "default" if empty
	// Cluster tells clusters apart whose members could reach each other by mistake. It counts when the first member is
	// opened for the first time.
	Cluster string
	// Peers is how this member and others reach each other. A member alone opens no port, and needs Peers only once
	// another one joins it.
	Peers *Peers
	// Join, for a member whose directory is still empty, has it admitted to a cluster, and returns the addresses of the
	// members of that cluster. It is called again when the members have changed meanwhile. nil: it is a cluster.
	Join func(ctx context.Context) ([]string, error)
	// API is where this machine answers for Others, HOST:PORT; the members tell each other.
	API string
	// Others are asked whether this member is still one of theirs; nil: it is.
	Others Others
	// ReplaceAfter is how long a voting member may be away before another member votes in its place; 0: for ever.
	ReplaceAfter time.Duration
	// Quota is how many bytes the file may grow to; 0 means 2 GiB.
	Quota int64
	// HistoryRevisions is how many revisions are kept at most for watches that resume and lists that are read in
	// pages; 0 means 100,000.
	HistoryRevisions int64
	// CompactEvery is the interval of compactions, and how long history is kept at least unless it exceeds
	// HistoryRevisions; 0 means 5 minutes.
	CompactEvery time.Duration
	// AwaitElection makes a single member wait for its election timeout of some seconds; see elect.
	AwaitElection bool
	Log           *slog.Logger
}

// Store is an open etcd.
type Store struct {
	cfg Config
	// join has this machine admitted; nil: it is a member, or its own cluster.
	join  func(context.Context) ([]string, error)
	space *space.Space
	quit  chan struct{}
	full  chan struct{} // wakes housekeeping: there is too little space
	aged  int64         // the revision at the last round; only housekeeping uses it
	done  sync.WaitGroup
	// failed delivers the error that ended etcd's server.
	failed chan error
	// mu is held for reading by whoever uses member. restarted is nil, but for while the server restarts: then it is
	// closed when the next one runs.
	mu         sync.RWMutex
	member     *member
	restarted  chan struct{}
	before     []Member   // who the members were when the restart began
	restarting sync.Mutex // held while the server restarts
	admitting  sync.Mutex // held while a member is admitted: two may ask at once
}

// startLimit is how long a member that is alone may take to start, and after which one of several says what it waits for.
const startLimit = 30 * time.Second

// Open starts the server and returns when it can be written to. One of several members waits for a majority of them
// for as long as it takes.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Name == "" {
		cfg.Name = "default"
	}
	if cfg.Quota == 0 {
		cfg.Quota = 2 << 30
	}
	if cfg.HistoryRevisions == 0 {
		cfg.HistoryRevisions = 100_000
	}
	if cfg.CompactEvery == 0 {
		cfg.CompactEvery = 5 * time.Minute
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("etcd's directory: %w", err)
	}
	s := &Store{cfg: cfg, join: cfg.Join, quit: make(chan struct{}), full: make(chan struct{}, 1), failed: make(chan error, 1)}
	var err error
	if s.space, err = space.New(cfg.Dir, BatchInterval, s.wakeHousekeeping, cfg.Log); err != nil {
		return nil, err
	}
	s.space.SizeLog()
	var m *member
	err = s.resume()
	if err == nil {
		m, err = s.start(ctx)
	}
	if err != nil {
		return nil, explain(cfg.Dir, err)
	}
	s.run(m)
	s.done.Add(1)
	go s.housekeeping()
	if err := s.readvertise(ctx); err != nil {
		cfg.Log.Warn("the other masters could not be told of this one's new address; the next start does it again", "error", err)
	}
	return s, nil
}

// explain adds what a person can do to the likely errors of a start.
func explain(dir string, err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("etcd cannot use %s: %w; run as root or choose another --data-dir", dir, err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("etcd cannot write to %s: %w; free some disk space", dir, err)
	}
	return fmt.Errorf("etcd in %s: %w", dir, err)
}

// Err delivers the error that ended the server, if one does.
func (s *Store) Err() <-chan error { return s.failed }

// Close implements store.Store.
func (s *Store) Close() error {
	close(s.quit)
	s.done.Wait()
	s.restarting.Lock()
	defer s.restarting.Unlock()
	s.mu.Lock() // those who use the member are done
	defer s.mu.Unlock()
	if !s.member.ended() {
		s.member.stop()
	}
	return nil
}

// use is the member that runs, until release is called. While the server restarts it waits for the next one, until a time
// (zero: without a limit), and then fails with store.ErrUnavailable. The holder must not call use again before: it waits
// while a restart waits for the first.
func (s *Store) use(ctx context.Context, until time.Time) (m *member, release func(), err error) {
	for {
		m, release, restarted := s.running()
		if restarted == nil {
			return m, release, nil
		}
		var late <-chan time.Time
		if !until.IsZero() {
			t := time.NewTimer(time.Until(until))
			defer t.Stop()
			late = t.C
		}
		select {
		case <-restarted:
		case <-late:
			return nil, nil, fmt.Errorf("%w: etcd's server restarts", store.ErrUnavailable)
		case <-s.quit:
			return nil, nil, fmt.Errorf("%w: the store is closed", store.ErrUnavailable)
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// running is the member that runs, until release is called; or else restarted tells when there is one again.
func (s *Store) running() (m *member, release func(), restarted <-chan struct{}) {
	s.mu.RLock()
	if s.restarted == nil {
		return s.member, s.mu.RUnlock, nil
	}
	defer s.mu.RUnlock()
	return nil, nil, s.restarted
}

// wrap turns etcd's errors into the store's.
func wrap(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrGRPCCompacted), errors.Is(err, rpctypes.ErrCompacted):
		return store.ErrCompacted
	case errors.Is(err, rpctypes.ErrGRPCNoSpace), errors.Is(err, rpctypes.ErrNoSpace), errors.Is(err, syscall.ENOSPC):
		return store.ErrNoSpace
	case errors.Is(err, rpctypes.ErrGRPCRequestTooLarge):
		return store.ErrTooLarge
	}
	return err
}
