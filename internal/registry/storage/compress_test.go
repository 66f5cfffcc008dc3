package storage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
)

// text is an object of a kind, of a family, as it is stored.
func text(t *testing.T, kind *api.Kind, name string, family, size int, r *rand.Rand) []byte {
	t.Helper()
	var filler strings.Builder
	for filler.Len() < size {
		fmt.Fprintf(&filler, "line %d of family %d ", filler.Len(), family)
	}
	obj := kind.New()
	obj.SetNamespace("default")
	obj.SetName(name)
	obj.SetUID(types.UID(fmt.Sprintf("%016x-%016x", r.Uint64(), r.Uint64())))
	obj.SetAnnotations(map[string]string{"said": filler.String()})
	raw, err := Encode(kind, obj)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Whatever comes and goes, every object is what was stored, and the books are right.
func TestTreesKeepWhatIsStored(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		tr := newTree(api.ConfigMaps)
		want := map[string][]byte{}
		held := map[string]*Entry{}
		size := []int{300, 1500, 5000, 40000}[seed]
		names := []int{3000, 600, 200, 40}[seed]
		most := 0
		for step := range 3 * names {
			name := fmt.Sprintf("m%04d", r.IntN(names))
			key := "default/" + name
			switch {
			case step > 2*names && r.IntN(3) > 0: // towards the end it becomes empty
				prev := tr.drop(key)
				if (prev != nil) != (want[key] != nil) {
					t.Fatalf("%s: dropped %v", key, prev)
				}
				delete(want, key)
			default:
				raw := text(t, api.ConfigMaps, name, r.IntN(5)+step/names*5, size/2+r.IntN(size/2), r)
				e := &Entry{kind: api.ConfigMaps, key: key, rev: int64(step + 1), text: bytes.Clone(raw)}
				if prev := tr.put(e); (prev != nil) != (want[key] != nil) || prev != nil && !bytes.Equal(prev.plain(), want[key]) {
					t.Fatalf("%s took the place of %v", key, prev)
				}
				want[key] = raw
				held[key] = e
			}
			if step%(names/5) == 0 {
				most = max(most, check(t, tr, want))
			}
		}
		check(t, tr, want)
		for _, key := range slices.Collect(maps.Keys(want)) {
			tr.drop(key)
			delete(want, key)
		}
		check(t, tr, want)
		if tr.texts.dict != nil || tr.texts.live != 0 || tr.texts.total != 0 {
			t.Errorf("what is empty keeps %+v", tr.texts)
		}
		for key, e := range held { // who still has one can read it
			if e.Key() != key || !json.Valid(e.plain()) {
				t.Errorf("%s is %s", e.Key(), e.plain())
			}
		}
		if compressed := size <= compressMost; compressed != (most > 0) {
			t.Errorf("objects of up to %d bytes: %d were compressed", size, most)
		}
	}
}

// check compares a tree with what should be in it, and returns how many objects are compressed.
func check(t *testing.T, tr *tree, want map[string][]byte) (compressed int) {
	t.Helper()
	uses := map[*dictionary]int{}
	total, n := 0, 0
	tr.Ascend(func(e *Entry) bool {
		n++
		if len(want[e.key]) <= compressMost {
			total += len(want[e.key])
		}
		if !bytes.Equal(e.plain(), want[e.key]) || e.Size() != len(want[e.key]) || !e.Equal(want[e.key]) {
			t.Fatalf("%s is %s, not %s", e.key, e.plain(), want[e.key])
		}
		var obj metav1.PartialObjectMetadata
		if err := json.Unmarshal(e.AppendJSON(nil), &obj); err != nil || obj.ResourceVersion != fmt.Sprint(e.rev) {
			t.Fatalf("%s is sent as %s: %v", e.key, e.AppendJSON(nil), err)
		}
		if e.dict != nil {
			uses[e.dict]++
			compressed++
		}
		return true
	})
	if n != len(want) || total != tr.texts.total || len(uses) != tr.texts.live {
		t.Fatalf("%d of %d objects; %d bytes, the books say %d; %d dictionaries, the books say %d", n, len(want), total, tr.texts.total, len(uses), tr.texts.live)
	}
	for d, n := range uses {
		if d.uses != n {
			t.Fatalf("a dictionary has %d users, the books say %d", n, d.uses)
		}
	}
	return compressed
}

// Pods of a few templates take a small part of what they are as JSON; dictionaries take little beside them.
func TestPodsAreSmall(t *testing.T) {
	tr := newTree(api.Pods)
	put := func(i int) {
		pod := siblingPod(fmt.Sprintf("p%05d", i), "", fmt.Sprintf("registry.example.com/team/image-%d:v1", i%20))
		pod.UID = types.UID(fmt.Sprintf("%x", rand.Uint64()))
		for j := range 12 {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprintf("example.com/taint-%d-%d", i%20, j), Operator: corev1.TolerationOpExists})
		}
		raw, err := Encode(api.Pods, pod)
		if err != nil {
			t.Fatal(err)
		}
		tr.put(&Entry{kind: api.Pods, key: "default/" + pod.Name, text: raw})
	}
	for i := range 10_000 {
		put(i)
	}
	for i := range 20_000 { // they are replaced again and again
		put(rand.IntN(10_000))
		if live := tr.texts.live * dictionarySize; live > tr.texts.total/dictionaryShare {
			t.Fatalf("after %d writes: %d dictionaries for %d bytes", i, tr.texts.live, tr.texts.total)
		}
	}
	kept := 0
	tr.Ascend(func(e *Entry) bool {
		kept += len(e.text)
		return true
	})
	if kept > tr.texts.total/4 {
		t.Errorf("%d bytes of JSON take %d", tr.texts.total, kept)
	}
	t.Logf("%d bytes of JSON take %d, and %d dictionaries", tr.texts.total, kept, tr.texts.live)
}

// What is read when the daemon starts comes in the order of keys, one family after the other.
func TestFilledTreesAreSmall(t *testing.T) {
	tr, r := newTree(api.ConfigMaps), rand.New(rand.NewPCG(1, 1))
	want := map[string][]byte{}
	for i := range 4000 {
		name := fmt.Sprintf("m%05d", i)
		raw := text(t, api.ConfigMaps, name, i/200, 1000, r)
		want["default/"+name] = raw
		tr.fill(&Entry{kind: api.ConfigMaps, key: "default/" + name, rev: 1, text: bytes.Clone(raw)})
	}
	tr.compressAll()
	if n := check(t, tr, want); n != 4000 {
		t.Errorf("%d are compressed", n)
	}
	kept := 0
	tr.Ascend(func(e *Entry) bool {
		kept += len(e.text)
		return true
	})
	if kept > tr.texts.total*3/10 || tr.texts.live != 1 {
		t.Errorf("%d bytes of JSON take %d, with %d dictionaries", tr.texts.total, kept, tr.texts.live)
	}
	// A few that come later are compressed with the same.
	for i := range 100 {
		name := fmt.Sprintf("later%05d", i)
		raw := text(t, api.ConfigMaps, name, i/5, 1000, r)
		want["default/"+name] = raw
		tr.put(&Entry{kind: api.ConfigMaps, key: "default/" + name, rev: 2, text: bytes.Clone(raw)})
	}
	if n := check(t, tr, want); n != 4100 || tr.texts.live != 1 {
		t.Errorf("%d are compressed, with %d dictionaries", n, tr.texts.live)
	}
}

// Families that come one after the other get dictionaries of their own as there are more of them.
func TestGrowingTreesAreSmall(t *testing.T) {
	tr, r := newTree(api.ConfigMaps), rand.New(rand.NewPCG(1, 1))
	kept, total := 0, 0
	for i := range 8000 {
		name := fmt.Sprintf("m%05d", i)
		e := &Entry{kind: api.ConfigMaps, key: "default/" + name, rev: 1, text: text(t, api.ConfigMaps, name, i/1000, 1000, r)}
		total += len(e.text)
		tr.put(e)
		kept += len(e.text)
	}
	if kept > total/2 || tr.texts.live < 3 {
		t.Errorf("%d bytes of JSON take %d, with %d dictionaries", total, kept, tr.texts.live)
	}
}

// Objects that are too long to be compressed are in no dictionary, prevent none, and do not keep one.
func TestLongObjectsBesideShortOnes(t *testing.T) {
	tr, r := newTree(api.ConfigMaps), rand.New(rand.NewPCG(1, 1))
	put := func(prefix string, n, size int) {
		for i := range n {
			name := fmt.Sprintf("%s%04d", prefix, i)
			tr.put(&Entry{kind: api.ConfigMaps, key: "default/" + name, rev: 1, text: text(t, api.ConfigMaps, name, i%5, size, r)})
		}
	}
	put("long", 60, 60_000)
	if tr.texts.dict != nil || tr.texts.total != 0 {
		t.Errorf("%d bytes count", tr.texts.total)
	}
	put("short", 1000, 1000)
	kept, short := 0, 0
	tr.Ascend(func(e *Entry) bool {
		if strings.Contains(e.key, "short") {
			kept, short = kept+len(e.text), short+e.Size()
		}
		return true
	})
	if kept > short/2 {
		t.Errorf("%d bytes of JSON take %d", short, kept)
	}
	for _, prefix := range []string{"short", "long"} {
		for i := range 1000 {
			tr.drop(fmt.Sprintf("default/%s%04d", prefix, i))
		}
	}
	if tr.Len() != 0 || tr.texts.dict != nil || tr.texts.enc != nil || tr.texts.packed != nil || tr.texts.live != 0 {
		t.Errorf("what is empty keeps %+v", tr.texts)
	}
}

// Of Secrets there is no dictionary.
func TestSecretsAreKeptApart(t *testing.T) {
	tr, r := newTree(api.Secrets), rand.New(rand.NewPCG(1, 1))
	for i := range 2000 {
		name := fmt.Sprint("s", i)
		tr.put(&Entry{kind: api.Secrets, key: "default/" + name, text: text(t, api.Secrets, name, 1, 1000, r)})
	}
	if tr.texts.dict != nil {
		t.Error("there is one")
	}
}

// Many read while one writes.
func TestCompressedIsReadAtOnce(t *testing.T) {
	tr, r := newTree(api.ConfigMaps), rand.New(rand.NewPCG(1, 1))
	seen := make(chan *Entry)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for e := range seen {
				if obj := e.Object(); KeyOf(e.kind, obj.GetNamespace(), obj.GetName()) != e.key || !json.Valid(e.AppendJSON(nil)) {
					t.Errorf("%s is %s", e.key, e.plain())
				}
			}
		})
	}
	for i := range 4000 {
		name := fmt.Sprint("m", r.IntN(1000))
		e := &Entry{kind: api.ConfigMaps, key: "default/" + name, rev: int64(i + 1), text: text(t, api.ConfigMaps, name, i/1000, 1000, r)}
		tr.put(e)
		seen <- e
	}
	close(seen)
	wg.Wait()
	if tr.texts.live == 0 {
		t.Error("nothing is compressed")
	}
}

func BenchmarkCompressed(b *testing.B) {
	for _, compressed := range []bool{false, true} {
		kind := *api.Pods
		kind.Confidential = !compressed
		tr := newTree(&kind)
		var all []*Entry
		for i := range 5000 {
			pod := siblingPod(fmt.Sprintf("p%05d", i), "", "image")
			for j := range 20 {
				pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprintf("example.com/taint-%d", j), Operator: corev1.TolerationOpExists})
			}
			raw, err := Encode(api.Pods, pod)
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, &Entry{kind: api.Pods, key: "default/" + pod.Name, rev: int64(i + 1), text: raw})
		}
		b.Run(fmt.Sprint("put/", compressed), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				e := all[i%len(all)]
				tr.put(&Entry{kind: e.kind, key: e.key, rev: e.rev, text: e.text})
			}
		})
		b.Run(fmt.Sprint("read/", compressed), func(b *testing.B) {
			var buf []byte
			for i := 0; b.Loop(); i++ {
				e, _ := tr.Get(all[i%len(all)])
				if e == nil {
					continue
				}
				buf = e.AppendJSON(buf[:0])
			}
		})
	}
}
