package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"minik8s/internal/store"
	"minik8s/internal/store/etcd/txn"
)

// A member's fence is a key of its own, and each of its writes has the guard that the fence is unchanged. A write to which
// the leader gave no answer may still be under way: a leader that was stopped hands it on to the next one when it wakes,
// seconds later. Before such a write is proposed again, the member changes its fence. From then on the first attempt has
// been carried out, or never is; so that a look at the keys tells which.

// fenceKey is the member's fence.
func (m *member) fenceKey() []byte {
	return fmt.Appendf(nil, "minik8s/fence/%x", uint64(m.server.MemberID()))
}

// raise remembers a revision of the fence: it only grows.
func (m *member) raise(fence int64) {
	for have := m.fence.Load(); fence > have && !m.fence.CompareAndSwap(have, fence); {
		have = m.fence.Load()
	}
}

// fenceOff has no write be carried out any more that was proposed under a fence, or an older one. One change does for all
// that wait for it. It is a write like others, and may fail like others.
func (m *member) fenceOff(ctx context.Context, fence int64) error {
	select {
	case m.fencing <- struct{}{}:
		defer func() { <-m.fencing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if m.fence.Load() > fence {
		return nil
	}
	resp, err := m.kv.Put(ctx, &pb.PutRequest{Key: m.fenceKey()})
	if err == nil {
		m.raise(resp.Header.Revision)
	}
	return err
}

// propose proposes a transaction under the member's fence, which it returns, and again if that has changed meanwhile: then
// the transaction was refused for that. A member alone needs no guard: it leads itself, and hands nothing on.
func (m *member) propose(ctx context.Context, req *pb.TxnRequest) (resp *pb.TxnResponse, fence int64, err error) {
	for {
		if fence = m.fence.Load(); m.alone {
			resp, err = m.kv.Txn(ctx, req)
			return resp, fence, err
		}
		resp, err = m.kv.Txn(ctx, m.under(fence, req))
		if err != nil || resp.Succeeded {
			return resp, fence, err
		}
		now := txn.Modified(resp.Responses[len(resp.Responses)-1])
		if now == fence {
			return resp, fence, nil
		}
		m.raise(now)
	}
}

// under is a transaction with the guard that the fence is unchanged, and if it fails a read of the fence after all others.
func (m *member) under(fence int64, req *pb.TxnRequest) *pb.TxnRequest {
	return txn.Under(req, m.fenceKey(), fence)
}

// happened tells whether changes were carried out after the revision since, when no attempt is under way any more: the
// revision at which they were, 0 if they were not, store.ErrUnknown if that cannot be told. The history of the first key
// that is set has it. Of a removal nobody knows whose it was.
func (m *member) happened(ctx context.Context, changes []store.Change, since int64) (int64, error) {
	i := slices.IndexFunc(changes, func(c store.Change) bool { return c.Action == store.Set })
	if i < 0 {
		i = slices.IndexFunc(changes, func(c store.Change) bool { return c.Action == store.Remove })
	}
	if i < 0 {
		return 0, nil // guards alone
	}
	c, now := &changes[i], m.server.KV().Rev()
	for since < now {
		batch, _, err := m.slice(ctx, c.Key, since, min(since+largestSlice, now))
		switch {
		case errors.Is(err, store.ErrCompacted):
			return 0, store.ErrUnknown
		case err != nil:
			return 0, err
		}
		for _, e := range batch.Events {
			was := int64(0)
			if e.Prev != nil {
				was = e.Prev.Modified
			}
			switch {
			case e.KV.Key != c.Key, c.Check(was) != nil: // another key, or a change by which the guard did not hold
			case c.Action == store.Remove && e.Type == store.Deletion:
				return 0, store.ErrUnknown
			case c.Action == store.Set && e.Type == store.Put && bytes.Equal(e.KV.Value, c.Value):
				return e.KV.Modified, nil
			}
		}
		since = batch.Revision
	}
	return 0, nil
}
