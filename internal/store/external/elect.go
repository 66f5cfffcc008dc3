package external

import (
	"context"
	"errors"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"minik8s/internal/store"
	"minik8s/internal/store/etcd/txn"
)

const (
	// leaseTTL is how long, in seconds, a master leads that does not renew its lease. etcd may make it longer.
	leaseTTL = 3
	// renewals is how often a lease is renewed in its time.
	renewals = 3
	// electPause is how long an election waits after an error.
	electPause = 200 * time.Millisecond
)

// voidAfter is how long nobody can be elected before that is said. Tests shorten it.
var voidAfter = 10 * time.Second

// election is who leads, as this master knows it.
type election struct {
	once    sync.Once
	mu      sync.Mutex
	leads   bool
	changed chan struct{}
}

func (e *election) set(leads bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leads != leads || e.changed == nil {
		if e.changed != nil {
			close(e.changed)
		}
		e.leads, e.changed = leads, make(chan struct{})
	}
}

// Leads reports whether this master leads the others, and when to ask again. The first call makes it stand for election. A
// master that was stopped or cut off may still believe that it leads.
func (s *Store) Leads() (leads bool, changed <-chan struct{}) {
	s.election.once.Do(func() {
		s.election.set(false)
		s.done.Add(1)
		go s.stand()
	})
	s.election.mu.Lock()
	defer s.election.mu.Unlock()
	return s.election.leads, s.election.changed
}

// stand has this master lead whenever no other does, until the store is closed.
func (s *Store) stand() {
	defer s.done.Done()
	ctx := s.life
	var failing, said time.Time // since when, and when that was said
	for ctx.Err() == nil {
		revision, free, err := s.vacant(ctx)
		switch {
		case err == nil && free:
			err = s.reign(ctx, revision)
		case err == nil:
			s.untilChanged(ctx, revision)
		}
		if err == nil {
			failing = time.Time{}
			continue
		}
		now := time.Now()
		if failing.IsZero() {
			failing = now
		}
		if now.Sub(failing) >= voidAfter && now.Sub(said) >= sayEvery && ctx.Err() == nil {
			s.cfg.Log.Warn("no master can be elected: the cluster's controllers and its scheduler do not work", "error", wrap(err), "since", now.Sub(failing))
			said = now
		}
		sleep(ctx, electPause)
	}
}

// vacant reports whether this master may lead: nobody does, or who does is this master, before it was killed and started
// again. revision is that of the key; 0 if there is none. If it may not, revision is that of the answer.
func (s *Store) vacant(ctx context.Context) (revision int64, free bool, err error) {
	resp, err := s.read(ctx, &pb.RangeRequest{Key: s.key(leaderKey)})
	switch {
	case err != nil:
		return 0, false, err
	case len(resp.Kvs) == 0:
		return 0, true, nil
	case string(resp.Kvs[0].Value) == s.cfg.Identity:
		return resp.Kvs[0].ModRevision, true, nil
	}
	return resp.Header.Revision, false, nil
}

// untilChanged waits until the key changes after a revision.
func (s *Store) untilChanged(ctx context.Context, revision int64) {
	w := s.leaderWatch(ctx, revision)
	defer w.Stop()
	for b := range w.Batches() {
		if len(b.Events) > 0 {
			return
		}
	}
}

func (s *Store) leaderWatch(ctx context.Context, after int64) *watch {
	w := s.newWatch(s.key(leaderKey), nil, after)
	w.target = func() int64 { return 0 }
	w.start(ctx, func() {})
	return w
}

// reign takes the key if it is still as it was at a revision, and leads as long as it has it.
func (s *Store) reign(ctx context.Context, revision int64) error {
	began := time.Now()
	try, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	lease, err := s.leases.LeaseGrant(try, &pb.LeaseGrantRequest{TTL: leaseTTL})
	if err != nil {
		return err
	}
	defer s.giveBack(lease.ID)
	key := s.key(leaderKey)
	resp, err := s.txn(try, &pb.TxnRequest{Compare: []*pb.Compare{txn.Unchanged(key, revision)},
		Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key, Value: []byte(s.cfg.Identity), Lease: lease.ID}}}}})
	if err != nil {
		return err
	}
	if !resp.Succeeded {
		return nil // somebody else was faster
	}
	s.election.set(true)
	defer s.election.set(false)
	s.hold(ctx, lease.ID, time.Duration(lease.TTL)*time.Second, began, resp.Header.Revision)
	return nil
}

// hold renews the lease, and returns when it is lost, or the key was changed after a revision.
func (s *Store) hold(ctx context.Context, lease int64, ttl time.Duration, renewed time.Time, revision int64) {
	w, held := s.leaderWatch(ctx, revision), revision
	defer func() { w.Stop() }()
	t := time.NewTicker(ttl / renewals)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			began := time.Now()
			// A member that does not answer leaves time to ask another one.
			left, err := s.renew(ctx, lease, ttl/renewals)
			switch {
			case err == nil && left > 0:
				renewed = began
			case err == nil, time.Since(renewed) > ttl:
				s.cfg.Log.Info("this master does not lead any more: it could not renew its lease", "error", err)
				return
			}
		case b, ok := <-w.Batches():
			switch {
			case len(b.Events) > 0:
				s.cfg.Log.Info("this master does not lead any more: somebody has changed the key by which it does")
				return
			case ok, ctx.Err() != nil: // in the second case it leads no more, either
				continue
			}
			// While the watch's connection was lost the history may have been dropped that it would have gone on with.
			err := w.Err()
			if errors.Is(err, store.ErrCompacted) {
				revision, err = s.stillHeld(ctx, held, renewed.Add(ttl))
			}
			if err != nil {
				s.cfg.Log.Info("this master does not lead any more: it does not see whether it does", "error", err)
				return
			}
			w = s.leaderWatch(ctx, revision)
			s.cfg.Log.Debug("the watch on who leads goes on", "after", revision)
		case <-ctx.Done():
			return
		}
	}
}

// stillHeld reads the key, and returns at which revision it was still as this master had written it at another one.
func (s *Store) stillHeld(ctx context.Context, written int64, until time.Time) (int64, error) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	resp, err := s.read(ctx, &pb.RangeRequest{Key: s.key(leaderKey)})
	switch {
	case err != nil:
		return 0, err
	case len(resp.Kvs) == 0 || resp.Kvs[0].ModRevision != written || string(resp.Kvs[0].Value) != s.cfg.Identity:
		return 0, errors.New("the key was changed")
	}
	return resp.Header.Revision, nil
}

// renew renews a lease once; left is its time in seconds, 0 if it has ended.
func (s *Store) renew(ctx context.Context, lease int64, limit time.Duration) (left int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stream, err := s.leases.LeaseKeepAlive(ctx)
	if err != nil {
		return 0, err
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: lease}); err != nil {
		return 0, err
	}
	resp, err := stream.Recv()
	if err != nil {
		return 0, err
	}
	return resp.TTL, nil
}

// giveBack ends a lease, so that another master may lead at once.
func (s *Store) giveBack(lease int64) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := s.leases.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: lease}); err != nil {
		s.cfg.Log.Debug("a lease was not given back, and ends by itself", "error", err)
	}
}
