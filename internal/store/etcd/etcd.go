package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"minik8s/internal/store"
)

// Config is how to open the store.
type Config struct {
	Dir  string // created if it does not exist
	Name string // of the member; "default" if empty
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
	cfg    Config
	server *embed.Etcd
	kv     pb.KVServer
	space  *space
	quit   chan struct{}
	full   chan struct{} // wakes housekeeping: there is too little space
	aged   int64         // the revision at the last round; only housekeeping uses it
	done   sync.WaitGroup
}

const (
	// maxRequest bounds one value, in bytes; Kubernetes limits objects to 1.5 MiB.
	maxRequest = 2 << 20
	startLimit = 30 * time.Second
	// batchInterval is how often etcd's database file is written from its log.
	batchInterval = 500 * time.Millisecond
)

// segments guards wal.SegmentSizeBytes, etcd's size of log segments, which is a variable of the whole process. etcd
// preallocates 64 MB for each segment; smaller ones save time and disk, and suffice for a cluster of one to a few
// dozen machines.
var segments sync.Mutex

func setSegments(size int64) {
	segments.Lock()
	defer segments.Unlock()
	if wal.SegmentSizeBytes != size {
		wal.SegmentSizeBytes = size
	}
}

// Open starts the server and returns when it can be written to.
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
	disk, err := newSpace(cfg.Dir, cfg.Log)
	if err != nil {
		return nil, err
	}
	setSegments(disk.segment)
	e, err := embed.StartEtcd(embedConfig(cfg))
	if err != nil {
		return nil, explain(cfg.Dir, err)
	}
	if !cfg.AwaitElection {
		elect(ctx, e.Server)
	}
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		e.Close()
		return nil, explain(cfg.Dir, err)
	case <-ctx.Done():
		e.Close()
		return nil, ctx.Err()
	case <-time.After(startLimit):
		e.Close()
		return nil, fmt.Errorf("etcd in %s was not ready after %s", cfg.Dir, startLimit)
	}
	s := &Store{cfg: cfg, server: e, space: disk, kv: v3rpc.NewQuotaKVServer(e.Server), quit: make(chan struct{}),
		full: make(chan struct{}, 1)}
	disk.file, disk.wakeHousekeeping = e.Server.Backend(), s.wakeHousekeeping
	s.done.Add(1)
	go s.housekeeping()
	return s, nil
}

func embedConfig(cfg Config) *embed.Config {
	ec := embed.NewConfig()
	ec.Name = cfg.Name
	ec.Dir = cfg.Dir
	ec.QuotaBackendBytes = cfg.Quota
	ec.MaxRequestBytes = maxRequest
	// No port is opened: the only client is this process, and a single member has no peers. The address only names
	// the member in the cluster until there are more members with real ones.
	peer := url.URL{Scheme: "http", Host: "localhost:2380"}
	ec.ListenClientUrls, ec.AdvertiseClientUrls = nil, nil
	ec.ListenPeerUrls, ec.AdvertisePeerUrls = nil, []url.URL{peer}
	ec.InitialCluster = cfg.Name + "=" + peer.String()
	// A single member sends no heartbeats and elects itself (see elect), so its ticks may be rare: each tick wakes
	// the processor. Several members will need the usual 100 and 1000.
	ec.TickMs, ec.ElectionMs = 500, 5000
	// Acknowledged writes are in the log; the batch is only how often the database file is written from it.
	ec.BackendBatchInterval = batchInterval
	// A log segment that a snapshot covers is no longer needed.
	ec.MaxWalFiles = 1
	// Raft's log is kept in memory, and its files on the disk, up to the last snapshot: a small interval bounds both,
	// also where each write is a megabyte. A member far behind gets a snapshot.
	ec.SnapshotCount = 2000
	ec.SnapshotCatchUpEntries = 200
	ec.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(&zapCore{log: cfg.Log}))
	return ec
}

// explain adds what a person can do to the likely errors of a start.
func explain(dir string, err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("etcd cannot use %s: %w; run as root or choose another --data-dir", dir, err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("etcd cannot write to %s: %w; free some disk space", dir, err)
	}
	return fmt.Errorf("etcd in %s: %w", dir, err)
}

// Err delivers the error that ended the server, if one does.
func (s *Store) Err() <-chan error { return s.server.Err() }

// Close implements store.Store.
func (s *Store) Close() error {
	close(s.quit)
	s.done.Wait()
	s.server.Close()
	return nil
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

// Server is the etcd inside, for what only etcd has (metrics, membership).
func (s *Store) Server() *etcdserver.EtcdServer { return s.server.Server }

// zapCore passes etcd's log to slog, from level warn on; the levels below are too detailed.
type zapCore struct {
	log    *slog.Logger
	fields []zapcore.Field
}

func (c *zapCore) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

func (c *zapCore) With(f []zapcore.Field) zapcore.Core {
	return &zapCore{log: c.log, fields: append(append([]zapcore.Field(nil), c.fields...), f...)}
}

func (c *zapCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *zapCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if c.log == nil {
		return nil
	}
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range append(append([]zapcore.Field(nil), c.fields...), fields...) {
		f.AddTo(enc)
	}
	args := []any{"part", "etcd"}
	for k, v := range enc.Fields {
		args = append(args, k, v)
	}
	// Right after a first start the log has no snapshot yet to read the version from; etcd tries again.
	early := e.Message == "failed to update storage version"
	if e.Level >= zapcore.ErrorLevel && !early {
		c.log.Error(strings.TrimSpace(e.Message), args...)
	} else {
		c.log.Debug(strings.TrimSpace(e.Message), args...)
	}
	return nil
}

func (c *zapCore) Sync() error { return nil }
