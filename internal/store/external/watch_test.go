package external

import (
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// A batch has whole revisions, and nothing that was delivered before.
func TestBatch(t *testing.T) {
	type message struct {
		at       []int64 // revisions of changes
		fragment bool
		want     []int64
		revision int64
	}
	for name, messages := range map[string][]message{
		"in order":                    {{at: []int64{11, 12, 12}, want: []int64{11, 12, 12}, revision: 12}},
		"parts":                       {{at: []int64{11, 12}, fragment: true, want: []int64{11}, revision: 11}, {at: []int64{12}, want: []int64{12, 12}, revision: 12}},
		"only a part":                 {{at: []int64{11}, fragment: true}, {at: []int64{11}, want: []int64{11, 11}, revision: 11}},
		"repeated":                    {{at: []int64{9, 10}}, {at: []int64{11}, want: []int64{11}, revision: 11}},
		"repeated, and more":          {{at: []int64{9, 10, 11}, want: []int64{11}, revision: 11}},
		"repeated within a long part": {{at: []int64{10, 10}, fragment: true}, {at: []int64{10, 11}, want: []int64{11}, revision: 11}},
		"no changes":                  {{revision: 15}},
	} {
		w := (&Store{cfg: Config{Prefix: "/p"}}).newWatch(nil, nil, 10)
		for i, m := range messages {
			resp := &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: 15}, Fragment: m.fragment}
			for _, at := range m.at {
				resp.Events = append(resp.Events, &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte("/p/a"), CreateRevision: 1, ModRevision: at}})
			}
			b, err := w.batch(resp)
			var got []int64
			for _, e := range b.Events {
				got = append(got, e.KV.Modified)
			}
			if err != nil || !slices.Equal(got, m.want) || b.Revision != m.revision {
				t.Errorf("%s, message %d: %v at %d, want %v at %d, %v", name, i, got, b.Revision, m.want, m.revision, err)
			}
			if b.Revision > w.after.Load() {
				w.after.Store(b.Revision)
			}
		}
	}
}
