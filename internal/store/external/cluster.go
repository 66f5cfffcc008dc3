package external

import (
	"context"
	"errors"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"minik8s/internal/store/etcd/txn"
)

// Vacant returns an error if a cluster has the prefix: for a machine that is to make a new one. Like Open it waits for etcd.
func Vacant(ctx context.Context, cfg Config) error {
	s, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // it was only a question
	return s.until(ctx, "the cluster's name", func(ctx context.Context) error {
		name, _, err := s.named(ctx)
		if name != "" {
			return s.taken()
		}
		return err
	})
}

func (s *Store) taken() error {
	return finalf("the etcd at %s has another cluster below %s: to join that one, give --server and --token (\"minik8sd ctl token create --role=master\" on one of its masters "+
		"prints both) in a data directory without keys; for a cluster of its own, give another --etcd-prefix", s.servers(), s.cfg.Prefix)
}

// named reads the cluster's name, and since which revision it is there. The error is final if etcd does not let this
// machine read it.
func (s *Store) named(ctx context.Context) (string, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	resp, err := s.kv.Range(ctx, &pb.RangeRequest{Key: s.key(clusterKey)})
	if err != nil {
		return "", 0, s.refusedFor(err)
	}
	if err := s.observe(resp.Header); err != nil {
		return "", 0, finalError{err}
	}
	if len(resp.Kvs) == 0 {
		return "", 0, nil
	}
	return string(resp.Kvs[0].Value), resp.Kvs[0].ModRevision, nil
}

// refusedFor makes an error final by which etcd says that this machine may not do what it has to.
func (s *Store) refusedFor(err error) error {
	if errors.Is(err, errAnother) {
		return finalError{err}
	}
	switch status.Code(err) {
	case codes.PermissionDenied, codes.Unauthenticated:
		return finalf("etcd at %s does not let this machine read and write below %s: %s; its user is the common name in --etcd-certfile", s.servers(), s.cfg.Prefix, status.Convert(err).Message())
	case codes.Unimplemented:
		return finalf("what answers at %s is no etcd, or one that is too old: %s", s.servers(), status.Convert(err).Message())
	}
	return err
}

// claim makes sure that the prefix is this cluster's, and that the store's own keys are there.
func (s *Store) claim(ctx context.Context) error {
	if err := s.supported(ctx); err != nil {
		return err
	}
	name, at, err := s.named(ctx)
	switch {
	case err != nil:
		return err
	case name == "" && !s.cfg.New:
		return finalf("the etcd at %s has no cluster below %s, and this machine is one of a cluster's masters: give the --etcd-servers and --etcd-prefix of that cluster; "+
			"if etcd has lost it, put a backup back with etcdutl; if the cluster is given up, leave it with \"minik8sd clean\"", s.servers(), s.cfg.Prefix)
	case name != "" && name != s.cfg.Cluster:
		return s.taken()
	}
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	if name == "" {
		resp, err := s.kv.Txn(ctx, &pb.TxnRequest{Compare: []*pb.Compare{txn.Unchanged(s.key(clusterKey), 0)},
			Success: []*pb.RequestOp{txn.Put(s.key(clusterKey), []byte(s.cfg.Cluster))}})
		if err != nil {
			return s.refusedFor(err)
		}
		if !resp.Succeeded {
			return s.claim(ctx) // another machine was faster: is it the same cluster?
		}
		at = resp.Header.Revision
	}
	s.claimed.Store(at)
	if s.cfg.Name != "" {
		key := s.key(mastersKey + s.cfg.Name)
		resp, err := s.kv.Range(ctx, &pb.RangeRequest{Key: key})
		if err == nil && (len(resp.Kvs) == 0 || string(resp.Kvs[0].Value) != s.cfg.API) {
			_, err = s.txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{txn.Put(key, []byte(s.cfg.API))}})
		}
		if err != nil {
			return s.refusedFor(err)
		}
	}
	// The fence is there from the start: a guard that a key is absent would hold again after somebody has removed it.
	resp, err := s.txn(ctx, &pb.TxnRequest{Compare: []*pb.Compare{txn.Unchanged(s.key(fenceKey), 0)},
		Success: []*pb.RequestOp{txn.Put(s.key(fenceKey), nil)}, Failure: []*pb.RequestOp{txn.RevisionOf(s.key(fenceKey))}})
	if err != nil {
		return s.refusedFor(err)
	}
	if fence := resp.Header.Revision; resp.Succeeded {
		raise(&s.fence, fence)
	} else {
		raise(&s.fence, txn.Modified(resp.Responses[0]))
	}
	return nil
}

// txn makes a transaction with the guard that the prefix is still this cluster's: its name is as it was at the start. It is
// not if etcd was made anew, or an operator has removed the keys while this master runs; what it writes then would be
// another cluster's, or the start of one that has nothing. The store ends. An answer beside an error is of another etcd.
func (s *Store) txn(ctx context.Context, req *pb.TxnRequest, options ...grpc.CallOption) (*pb.TxnResponse, error) {
	key, at := s.key(clusterKey), s.claimed.Load()
	ours := []*pb.Compare{txn.Unchanged(key, at), {Key: key, Target: pb.Compare_VALUE, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_Value{Value: []byte(s.cfg.Cluster)}}}
	resp, err := s.kv.Txn(ctx, &pb.TxnRequest{Compare: append(ours, req.Compare...), Success: req.Success,
		Failure: append(slices.Clip(req.Failure), &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}})}, options...)
	if err != nil {
		return nil, err
	}
	if err := s.observe(resp.Header); err != nil || resp.Succeeded {
		return resp, err
	}
	last := len(resp.Responses) - 1
	if txn.Modified(resp.Responses[last]) != at || string(resp.Responses[last].GetResponseRange().Kvs[0].Value) != s.cfg.Cluster {
		return resp, s.gone()
	}
	resp.Responses = resp.Responses[:last]
	return resp, nil
}

// gone ends the store: the prefix is not this cluster's any more.
func (s *Store) gone() error {
	return s.another("has not this cluster below %s any more; was it made anew, or were the keys removed?", s.cfg.Prefix)
}

// oldest is the first etcd whose progress notifications never tell of a revision before the changes up to it are sent.
const oldest = "3.5.13"

// supported refuses an etcd that is too old. A version that etcd does not tell, because this machine has no right to ask,
// is taken for a new one.
func (s *Store) supported(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	resp, err := s.upkeep.Status(ctx, &pb.StatusRequest{})
	if err == nil && before(resp.Version, oldest) {
		return finalf("the etcd at %s is version %s: %s or later is needed", s.servers(), resp.Version, oldest)
	}
	return nil
}

// before compares versions like 3.5.13, also with an ending like -rc.1.
func before(version, other string) bool {
	a, b := numbers(version), numbers(other)
	return len(a) == len(b) && slices.Compare(a, b) < 0
}

func numbers(version string) (out []int) {
	version, _, _ = strings.Cut(version, "-")
	for part := range strings.SplitSeq(version, ".") {
		n := 0
		for _, c := range part {
			if c < '0' || c > '9' {
				return nil
			}
			n = 10*n + int(c-'0')
		}
		out = append(out, n)
	}
	return out
}

// Masters are the addresses, HOST:PORT, at which the cluster's masters serve, those too that are away. A master stays in
// the list until its key is removed with etcdctl.
func (s *Store) Masters(ctx context.Context) ([]string, error) {
	list, err := s.list(ctx, mastersKey, "", 0, 0)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, kv := range list.KVs {
		out = append(out, string(kv.Value))
	}
	return out, nil
}

// MastersKey is the key in etcd below which the masters are, by name.
func (s *Store) MastersKey() string { return s.cfg.Prefix + mastersKey }
