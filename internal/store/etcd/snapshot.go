package etcd

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"

	"go.etcd.io/etcd/server/v3/storage/backend"

	"minik8s/internal/store"
)

// Snapshot is a copy of the store as it was at one moment, in the form of etcd's own snapshots: the database's file and
// its SHA-256.
type Snapshot struct {
	// Revision is the last one that the copy has for certain.
	Revision int64
	// Size is how many bytes WriteTo writes.
	Size int64

	file   backend.Snapshot
	member *member
}

// Snapshot has all that was acknowledged before. It must be closed soon: until then the store's file only grows.
func (s *Store) Snapshot(ctx context.Context) (snap *Snapshot, err error) {
	err = s.do(ctx, func(ctx context.Context, m *member) (err error) {
		if err := m.current(ctx); err != nil {
			return err
		}
		snap, err = attached(m, func() (*Snapshot, error) {
			s := &Snapshot{Revision: m.server.KV().Rev(), member: m}
			m.server.Backend().ForceCommit()
			s.file = m.server.Backend().Snapshot()
			s.Size = s.file.Size() + sha256.Size
			return s, nil
		})
		if err == nil {
			m.streams.Add(1)
		}
		return err
	})
	return snap, err
}

// WriteTo implements io.WriterTo. It fails with store.ErrUnavailable when the server ends, for it waits for this.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	sum := sha256.New()
	out := untilEnd{w: w, end: s.member.ending}
	n, err := s.file.WriteTo(io.MultiWriter(out, sum))
	if err != nil {
		return n, err
	}
	more, err := out.Write(sum.Sum(nil))
	return n + int64(more), err
}

// Close gives the copy up.
func (s *Snapshot) Close() error {
	defer s.member.streams.Done()
	return s.file.Close()
}

// Save writes a snapshot.
func (s *Store) Save(ctx context.Context, w io.Writer) error {
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	_, err = snap.WriteTo(w)
	return errors.Join(err, snap.Close())
}

// Spare is how many bytes of the disk may be used for something else before writes are refused.
func (s *Store) Spare() int64 { return s.space.Spare() }

// untilEnd is a writer that fails from some moment on.
type untilEnd struct {
	w   io.Writer
	end <-chan struct{}
}

func (u untilEnd) Write(p []byte) (int, error) {
	select {
	case <-u.end:
		return 0, store.ErrUnavailable
	default:
		return u.w.Write(p)
	}
}
