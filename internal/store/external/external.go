package external

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Config is how to reach etcd, and as whom.
type Config struct {
	// Servers are the URLs of etcd's members, all https or all http.
	Servers []string
	// Prefix is where the cluster's keys are, like /minik8s. Nobody else may write there.
	Prefix string
	// CAFile signs the certificates of etcd's members; empty: the system's authorities do. CertFile and KeyFile are by what
	// etcd knows this machine; empty: it asks for no certificate.
	CAFile, CertFile, KeyFile string

	// Cluster is the name of the cluster: everything below the prefix is its. A cluster that is not there yet is made only
	// if New is set.
	Cluster string
	New     bool
	// Name is this master's among the masters, and API where it serves, HOST:PORT.
	Name, API string
	// Identity tells this machine apart when it is to lead: no two processes that run at a time have the same.
	Identity string
	// CompactEvery is the interval of compactions, and how much history is kept at least; 0: others compact.
	CompactEvery time.Duration
	Log          *slog.Logger
}

// Store is an open store.
type Store struct {
	cfg    Config
	client *clientv3.Client
	// kv, watches, leases and upkeep are etcd's services, over connections that client keeps. Unlike client's own methods
	// they fail at once where there is no connection, with the reason.
	kv      pb.KVClient
	watches pb.WatchClient
	leases  pb.LeaseClient
	upkeep  pb.MaintenanceClient

	// seen is the highest revision that etcd has told, and of which etcd that is: an identity of the cluster of its members.
	seen   atomic.Int64
	etcdID atomic.Uint64
	// claimed is the revision at which the cluster's name was written.
	claimed atomic.Int64
	// fence is the revision of the fence, as far as this process knows it; fencing holds one while it is changed.
	fence   atomic.Int64
	fencing chan struct{}
	barrier barrier
	// wanted is the highest revision that Revision has returned: watches have to reach it.
	wanted    atomic.Int64
	open      followers
	compacted atomic.Int64 // the highest compaction that is known
	election  election

	life context.Context // ends when the store is closed
	end  context.CancelFunc
	done sync.WaitGroup
	// failed delivers the error after which the store is of no use.
	failed chan error
}

// Open connects, and returns when the cluster can be read and written. It waits for etcd for as long as it takes; errors
// are those that waiting does not cure, such as a certificate that etcd refuses or a prefix that is another cluster's.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.until(ctx, "the cluster's name", s.claim); err != nil {
		s.Close() //nolint:errcheck // the first error counts
		return nil, err
	}
	if cfg.CompactEvery > 0 {
		s.done.Add(1)
		go s.keepCompacting()
	}
	return s, nil
}

// Err delivers the error after which the store is of no use, if there is one.
func (s *Store) Err() <-chan error { return s.failed }

// fail says that the store is of no use any more.
func (s *Store) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// Close implements store.Store. If this master leads, another one may at once.
func (s *Store) Close() error {
	s.end()
	s.done.Wait()
	err := s.client.Close()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// context is one that ends with another one, and when the store is closed.
func (s *Store) context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	stop := context.AfterFunc(s.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// errAnother is in the errors of an etcd that has not what this process has read and written before.
var errAnother = errors.New("start this daemon again")

// another ends the store: what this process knows of etcd's content is not true any more.
func (s *Store) another(what string, args ...any) error {
	err := fmt.Errorf("the etcd at %s %s: %w", s.servers(), fmt.Sprintf(what, args...), errAnother)
	s.fail(err)
	return err
}

// observe notes what the header of an answer tells. An answer with an error must not be used: it is another etcd's. That
// is not always seen here, because the identity is made of the members' names and addresses: an etcd that was made anew, or
// from a backup, with the same ones has the same. Then its revision (see since) or the cluster's name (see txn) tells.
func (s *Store) observe(h *pb.ResponseHeader) error {
	if h == nil {
		return nil
	}
	if !s.etcdID.CompareAndSwap(0, h.ClusterId) && s.etcdID.Load() != h.ClusterId {
		return s.another("is another one than before; was it made anew?")
	}
	raise(&s.seen, h.Revision)
	return nil
}

// since is observe for the answer of a majority, to a question that was asked when a revision had been seen.
func (s *Store) since(before int64, h *pb.ResponseHeader) error {
	if h.Revision < before {
		return s.another("went from revision %d back to %d; was it made anew, or a backup put back?", before, h.Revision)
	}
	return s.observe(h)
}

// raise makes a number at least as large as another one.
func raise(n *atomic.Int64, to int64) {
	for have := n.Load(); to > have && !n.CompareAndSwap(have, to); {
		have = n.Load()
	}
}

// key is where a key of the store lies in etcd.
func (s *Store) key(key string) []byte { return []byte(s.cfg.Prefix + key) }

// span is the range of the keys with a prefix. All keys begin with a slash, so that another cluster's prefix may begin as
// this one's does.
func (s *Store) span(prefix string) (first, last []byte) {
	first = s.key(or(prefix, "/"))
	return first, []byte(clientv3.GetPrefixRangeEnd(string(first)))
}

// The keys that are the store's own, which no key of its users is.
const (
	clusterKey = "/minik8s/cluster"
	fenceKey   = "/minik8s/fence"
	leaderKey  = "/minik8s/leader"
	compactKey = "/minik8s/compacted"
	mastersKey = "/minik8s/masters/"
)
