package external

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// Snapshot is a copy of the whole etcd, with what others keep there, in the form of etcd's own snapshots.
type Snapshot struct {
	// Revision is the last one that the copy has for certain.
	Revision int64
	// Size is how many bytes WriteTo writes.
	Size int64

	first  *pb.SnapshotResponse
	stream pb.Maintenance_SnapshotClient
	conn   *grpc.ClientConn
	cancel context.CancelFunc
}

// Snapshot has all that was acknowledged before. One of etcd's members sends it; it must be closed.
func (s *Store) Snapshot(ctx context.Context) (*Snapshot, error) {
	var errs []error
	for _, i := range rand.Perm(len(s.cfg.Servers)) {
		snap, err := s.snapshotOf(ctx, s.cfg.Servers[i])
		if err == nil {
			return snap, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// snapshotOf asks one member, which is first made to have all that was acknowledged.
func (s *Store) snapshotOf(ctx context.Context, server string) (*Snapshot, error) {
	conn, err := s.client.Dial(server)
	if err != nil {
		return nil, err
	}
	out := &Snapshot{conn: conn}
	ctx, out.cancel = s.context(ctx)
	err = s.do(ctx, readLimit, func(ctx context.Context) error {
		resp, err := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: s.key(clusterKey), CountOnly: true})
		if err == nil {
			out.Revision = resp.Header.Revision
		}
		return err
	})
	if err == nil {
		out.stream, err = pb.NewMaintenanceClient(conn).Snapshot(ctx, &pb.SnapshotRequest{})
	}
	if err == nil {
		out.first, err = out.stream.Recv()
	}
	if err != nil {
		out.Close() //nolint:errcheck // the first error counts
		return nil, err
	}
	out.Size = int64(len(out.first.Blob)) + int64(out.first.RemainingBytes) + sha256.Size
	return out, nil
}

// WriteTo implements io.WriterTo.
func (s *Snapshot) WriteTo(w io.Writer) (written int64, err error) {
	for part := s.first; ; {
		n, err := w.Write(part.Blob)
		if written += int64(n); err != nil {
			return written, err
		}
		if part, err = s.stream.Recv(); errors.Is(err, io.EOF) {
			return written, nil
		} else if err != nil {
			return written, err
		}
	}
}

// Close gives the copy up.
func (s *Snapshot) Close() error {
	s.cancel()
	return s.conn.Close()
}
