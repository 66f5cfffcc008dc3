package txn

import (
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"minik8s/internal/store"
)

// Of is the transaction for changes; key is where the store has a key in etcd. If a guard does not hold, it reads at which
// revisions the guarded keys are.
func Of(changes []store.Change, key func(string) []byte) *pb.TxnRequest {
	req := &pb.TxnRequest{}
	for i := range changes {
		c, k := &changes[i], key(changes[i].Key)
		switch c.Action {
		case store.Set:
			req.Success = append(req.Success, Put(k, c.Value))
		case store.Remove:
			req.Success = append(req.Success, remove(k))
		}
		if c.Guard != store.Any {
			req.Compare = append(req.Compare, Unchanged(k, c.Modified))
			req.Failure = append(req.Failure, RevisionOf(k))
		}
	}
	return req
}

// Under is a transaction with one more guard: that a key is still of a revision. If a guard does not hold, it reads the key's
// after all others.
func Under(req *pb.TxnRequest, key []byte, revision int64) *pb.TxnRequest {
	return &pb.TxnRequest{Success: req.Success,
		Compare: append(slices.Clip(req.Compare), Unchanged(key, revision)), Failure: append(slices.Clip(req.Failure), RevisionOf(key))}
}

// Refusal finds the guard that did not hold, from the answer to the transaction of Of.
func Refusal(changes []store.Change, resp *pb.TxnResponse) error {
	n := 0
	for i := range changes {
		if changes[i].Guard == store.Any {
			continue
		}
		if err := changes[i].Check(Modified(resp.Responses[n])); err != nil {
			return err
		}
		n++
	}
	return store.ErrConflict
}

// Modified is the revision of the key that a transaction has read; 0 if there is no such key.
func Modified(read *pb.ResponseOp) int64 {
	if kvs := read.GetResponseRange().GetKvs(); len(kvs) > 0 {
		return kvs[0].ModRevision
	}
	return 0
}

// Unchanged compares the revision at which a key was last changed; 0: it does not exist.
func Unchanged(key []byte, revision int64) *pb.Compare {
	return &pb.Compare{Key: key, Result: pb.Compare_EQUAL, Target: pb.Compare_MOD,
		TargetUnion: &pb.Compare_ModRevision{ModRevision: revision}}
}

// RevisionOf reads at which revision a key is.
func RevisionOf(key []byte) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key, KeysOnly: true}}}
}

// Put writes a key.
func Put(key, value []byte) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key, Value: value}}}
}

func remove(key []byte) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: key}}}
}
