package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
)

const (
	// maxRequest bounds one value, in bytes; Kubernetes limits objects to 1.5 MiB.
	maxRequest = 2 << 20
	// BatchInterval is how often etcd's database file is written from its log.
	BatchInterval = 500 * time.Millisecond
	// A member alone sends no heartbeats and elects itself (see elect), so its ticks may be rare: each tick wakes the
	// processor.
	aloneTick, aloneElection = 500, 5000 // milliseconds
	// Of several members, one stands for election when it has heard nothing from the leader for between one and two
	// times the election's time.
	peersTick, peersElection = 50, 400 // milliseconds
	// catchUp is how many entries of Raft's log are kept for members that are behind; one farther behind gets a snapshot.
	catchUp = 200
	// maxLearners is how many members may be waiting to vote; those beyond the voters serve for as long as they live.
	maxLearners = 64
)

// member is one run of etcd's server. The store has another one when it has restarted the server.
type member struct {
	etcd   *embed.Etcd
	server *etcdserver.EtcdServer
	kv     pb.KVServer

	// port serves the other members, with peers; nil if the member is alone.
	port  *http.Server
	peers peerHandler
	// alone says that it opened no port for others: nobody else can lead.
	alone bool
	// reign ends when another member leads, or the server stops.
	reign atomic.Pointer[reign]
	// changing is held during a change of the members: Raft makes one at a time.
	changing sync.Mutex
	// fence is the revision of the member's fence, as far as this run knows it; fencing holds one while it is changed.
	fence   atomic.Int64
	fencing chan struct{}
	// streams are the watches of this run; ending tells them to end.
	streams sync.WaitGroup
	ending  chan struct{}
	// closed is closed when the server has ended, or is about to.
	closed    chan struct{}
	closeOnce sync.Once
	verdict   verdict
}

// reign is a time in which the leader does not change.
type reign struct {
	context.Context
	end context.CancelFunc
}

func newReign() *reign {
	ctx, end := context.WithCancel(context.Background())
	return &reign{ctx, end}
}

// run makes a member that has started the one that is used. The caller alone uses the store, or holds mu.
func (s *Store) run(m *member) {
	s.member = m
	s.space.Use(m.server.Backend)
	go s.watchEnd(m)
}

// fail says that the store is of no use any more.
func (s *Store) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// startMember starts the server and waits until it can be written to.
func (s *Store) startMember(ctx context.Context) (*member, error) {
	m := &member{alone: !s.hasPeers() && s.join == nil, fencing: make(chan struct{}, 1), ending: make(chan struct{}), closed: make(chan struct{})}
	if !m.alone {
		if err := m.listen(s.cfg.Peers); err != nil {
			return nil, err
		}
	}
	if err := s.launch(ctx, m); err != nil {
		m.close()
		return nil, err
	}
	if !s.cfg.AwaitElection {
		go elect(ctx, m.server, m.alone)
	}
	if err := s.untilReady(ctx, m); err != nil {
		m.close()
		return nil, err
	}
	m.kv = v3rpc.NewQuotaKVServer(m.server)
	changed := m.server.LeaderChangedNotify() // before the reign begins, so that no change is missed
	m.reign.Store(newReign())
	if !m.alone {
		go m.followLeader(changed)
		go s.keepVoters(m)
	}
	return m, nil
}

// untilReady waits until a member that was started can be written to, and, if others may know better whether it is still
// one, for their answer, but no longer than that usually takes.
func (s *Store) untilReady(ctx context.Context, m *member) error {
	late, asking := time.NewTimer(startLimit), time.NewTimer(askLimit)
	defer late.Stop()
	defer asking.Stop()
	serving, stop := context.WithCancel(ctx)
	defer stop()
	ready, ended, stays, asked := m.serves(serving), m.server.StopNotify(), m.verdict.stays, m.verdict.stays == nil
	for ready != nil || !asked {
		select {
		case <-ready:
			ready = nil
		case <-stays:
			asked, stays = true, nil
		case <-asking.C:
			asked = asked || ended != nil // if it has ended, the others know why
		case <-m.verdict.gone:
			return gone{m.servers()}
		case <-ended:
			ended = nil
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			if m.alone {
				return fmt.Errorf("it was not ready after %s", startLimit)
			}
			s.cfg.Log.Warn("this master waits for a majority of the masters; if they are lost for good, stop it and see "+
				"\"minik8sd ctl etcd recover --help\"", "members", m.members())
			late.Reset(10 * startLimit)
		}
		if ended == nil && asked && stays == nil {
			if s.removedMeanwhile(ctx, m) {
				return gone{m.servers()}
			}
			return errors.New("it ended while it started")
		}
	}
	return nil
}

// serves is closed when the member can be read from and written to. etcd regards itself as ready when it has told its name
// to the others; with several members it may wait six seconds to tell it again, because it did so when nobody led.
func (m *member) serves(ctx context.Context) <-chan struct{} {
	if m.alone {
		return m.server.ReadyNotify()
	}
	out := make(chan struct{})
	go func() {
		defer close(out)
		for {
			try, cancel := context.WithTimeout(ctx, servesWithin)
			_, err := m.server.Range(try, &pb.RangeRequest{Key: []byte{0}, CountOnly: true})
			cancel()
			if err == nil || ctx.Err() != nil || closed(m.server.StopNotify()) {
				break
			}
			t := time.NewTimer(retryPause)
			select {
			case <-t.C:
			case <-m.server.ReadyNotify():
				t.Stop()
				return
			case <-ctx.Done():
			}
		}
		if closed(m.server.StopNotify()) {
			<-ctx.Done() // it never will
		}
	}()
	return out
}

// servesWithin is how long a new member waits for an answer of the leader before it asks again.
const servesWithin = 500 * time.Millisecond

// launch starts the server: of a cluster that is new or that it is a member of already, or, the first time, of one that
// it joins.
func (s *Store) launch(ctx context.Context, m *member) (err error) {
	ec := s.embedConfig(m.alone)
	start := func() error {
		e, err := embed.StartEtcd(ec)
		if err == nil {
			m.etcd, m.server = e, e.Server
			m.serve()
		}
		return err
	}
	_, err = os.Stat(filepath.Join(s.cfg.Dir, "member", "wal"))
	if !errors.Is(err, os.ErrNotExist) || s.join == nil {
		if err = start(); err == nil {
			s.askOthers(m)
		}
		return err
	}
	for pause := joinPause; ; pause = min(2*pause, maxJoinPause) {
		var members []string
		if members, err = s.join(ctx); err != nil {
			return err
		}
		ec.ClusterState = embed.ClusterStateFlagExisting
		ec.InitialCluster = s.initialCluster(members)
		if err = s.rememberPeers(); err != nil { // before there is a log: then it counts at the next start
			return err
		}
		if err = start(); err == nil {
			return nil
		}
		// Another machine may have joined between the two, so that the list is too short.
		level := slog.LevelInfo
		if pause > joinPause {
			level = slog.LevelWarn
		}
		s.cfg.Log.Log(ctx, level, "etcd cannot join the other members yet, trying again", "members", members, "error", err, "in", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Store) embedConfig(alone bool) *embed.Config {
	cfg := s.cfg
	ec := embed.NewConfig()
	ec.Name = cfg.Name
	ec.Dir = cfg.Dir
	ec.QuotaBackendBytes = cfg.Quota
	ec.MaxRequestBytes = maxRequest
	ec.MaxLearners = maxLearners
	// etcd's own checks of a change of members would refuse learners for some seconds after each change of the voters, and
	// always while one of three is away; but a learner changes nothing about who must agree, and may be needed to replace
	// the one that is away. next decides who is promoted, and canSpare whether one may be removed, unless it has lost its data.
	ec.StrictReconfigCheck = false
	if cfg.Cluster != "" {
		ec.InitialClusterToken = cfg.Cluster
	}
	// The only client is this process, and the port for other members is the store's own (see serve). A member alone has
	// none: its address only names it in the cluster until there are other members.
	ec.ListenClientUrls, ec.AdvertiseClientUrls, ec.ListenPeerUrls = nil, nil, nil
	peer := url.URL{Scheme: "http", Host: "localhost:2380"}
	ec.TickMs, ec.ElectionMs = aloneTick, aloneElection
	if !alone {
		peer = cfg.Peers.url()
		ec.PeerTLSInfo = cfg.Peers.tls()
		ec.TickMs, ec.ElectionMs = peersTick, peersElection
	}
	ec.AdvertisePeerUrls = []url.URL{peer}
	if cfg.API != "" {
		ec.AdvertiseClientUrls = []url.URL{{Scheme: "https", Host: cfg.API}}
	}
	ec.InitialCluster = cfg.Name + "=" + peer.String()
	// Acknowledged writes are in the log; the batch is only how often the database file is written from it.
	ec.BackendBatchInterval = BatchInterval
	// A log segment that a snapshot covers is no longer needed.
	ec.MaxWalFiles = 1
	// Raft's log is kept in memory, and its files on the disk, up to the last snapshot: a small interval bounds both,
	// also where each write is a megabyte. A member far behind gets a snapshot.
	ec.SnapshotCount = 2000
	ec.SnapshotCatchUpEntries = catchUp
	ec.ZapLoggerBuilder = embed.NewZapLoggerBuilder(ZapLogger(cfg.Log))
	return ec
}

// stop ends the server, after the watches that it feeds. Nobody uses it any more.
func (m *member) stop() {
	close(m.ending)
	m.reign.Load().end()
	m.streams.Wait()
	m.close()
}

// close ends the server, as far as it has started. The port is closed after it, because it passes its leadership on, and
// without waiting for the other members' connections.
func (m *member) close() {
	if m.closed != nil {
		m.closeOnce.Do(func() { close(m.closed) })
	}
	if m.etcd != nil {
		m.server.Stop()
	}
	if m.port != nil {
		m.port.Close() //nolint:errcheck // those who are connected try again
	}
	if m.etcd != nil {
		m.etcd.Close()
	}
}

// restart ends the server and starts it again, with peers if there are some now. Requests wait meanwhile, for as long as
// they would for a leader, and watches go on where they were. It goes on if who asked for it gives up. If the server does not start, the store has failed.
func (s *Store) restart() error {
	s.restarting.Lock()
	defer s.restarting.Unlock()
	if s.member.ended() { // the store was closed meanwhile
		return etcderrors.ErrStopped
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	err := s.replace(func() (*member, error) { return s.start(ctx) })
	if err != nil {
		err = fmt.Errorf("it did not start again: %w", err)
		s.fail(err)
	}
	return err
}

// replace ends the member that runs, and has start make the next one; restarting is held. If that fails, there is none any
// more.
func (s *Store) replace(start func() (*member, error)) error {
	restarted := make(chan struct{})
	s.mu.Lock() // those who use the member are done
	s.restarted, s.before = restarted, s.member.members()
	s.mu.Unlock()
	s.member.stop()
	m, err := start()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run(m)
	s.restarted, s.before = nil, nil
	close(restarted)
	return nil
}

// followLeader ends the reign whenever the leader changes, so that requests need not wait for an answer that a lost
// leader will not give.
func (m *member) followLeader(changed <-chan struct{}) {
	for {
		select {
		case <-changed:
			changed = m.server.LeaderChangedNotify()
			m.reign.Swap(newReign()).end()
		case <-m.ending:
			return
		}
	}
}

// Leads reports whether this member leads the others, and when to ask again. A member that has lost touch with the
// others may still believe that it leads: nothing that it writes is accepted then.
func (s *Store) Leads() (leads bool, changed <-chan struct{}) {
	m, release, restarted := s.running()
	if restarted != nil {
		return false, restarted
	}
	defer release()
	changed = m.reign.Load().Done() // before the leader is read, so that no change is missed
	return m.server.Leader() == m.server.MemberID(), changed
}
