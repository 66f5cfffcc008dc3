package memory

import (
	"context"
	"sort"
	"strings"
	"sync"

	"minik8s/internal/store"
)

// Store is a store in memory. Make it with New.
type Store struct {
	mu        sync.Mutex
	revision  int64
	compacted int64
	keys      map[string]store.KV
	history   []store.Event // in the order of revisions
	changed   chan struct{} // closed and renewed at each write
}

// New is an empty store at revision 1, as etcd starts.
func New() *Store {
	return &Store{revision: 1, keys: map[string]store.KV{}, changed: make(chan struct{})}
}

// Get implements store.Store.
func (s *Store) Get(_ context.Context, key string) (store.KV, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kv, ok := s.keys[key]
	if !ok {
		return store.KV{}, store.ErrNotFound
	}
	return kv, nil
}

// List implements store.Store.
func (s *Store) List(_ context.Context, prefix, after string, limit, revision int64) (store.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := s.keys
	if revision == 0 {
		revision = s.revision
	}
	if revision < s.compacted {
		return store.Page{}, store.ErrCompacted
	}
	if revision < s.revision {
		keys = s.at(revision)
	}
	var names []string
	for k := range keys {
		if strings.HasPrefix(k, prefix) && k > after {
			names = append(names, k)
		}
	}
	sort.Strings(names)
	page := store.Page{Revision: revision, Count: int64(len(names))}
	if limit > 0 && int64(len(names)) > limit {
		names, page.More = names[:limit], true
	}
	for _, k := range names {
		page.KVs = append(page.KVs, keys[k])
	}
	return page, nil
}

// at rebuilds the keys as they were at a revision.
func (s *Store) at(revision int64) map[string]store.KV {
	keys := map[string]store.KV{}
	for _, e := range s.history {
		if e.KV.Modified > revision {
			break
		}
		if e.Type == store.Deletion {
			delete(keys, e.KV.Key)
		} else {
			keys[e.KV.Key] = e.KV
		}
	}
	return keys
}

// Write implements store.Store.
func (s *Store) Write(_ context.Context, changes ...store.Change) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range changes {
		if err := c.Check(s.keys[c.Key].Modified); err != nil {
			return 0, err
		}
	}
	next := s.revision + 1
	for _, c := range changes {
		old, there := s.keys[c.Key]
		switch {
		case c.Action == store.Set:
			kv := store.KV{Key: c.Key, Value: append([]byte(nil), c.Value...), Created: next, Modified: next}
			if there {
				kv.Created = old.Created
			}
			s.keys[c.Key] = kv
			s.record(store.Event{Type: store.Put, KV: kv})
		case c.Action == store.Remove && there:
			delete(s.keys, c.Key)
			s.record(store.Event{Type: store.Deletion, KV: store.KV{Key: c.Key, Modified: next}})
		default:
			continue
		}
		s.revision = next
	}
	return s.revision, nil
}

func (s *Store) record(e store.Event) {
	s.history = append(s.history, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// Revision implements store.Store.
func (s *Store) Revision(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision, nil
}

// Compact implements store.Store. The last state of every key stays readable.
func (s *Store) Compact(_ context.Context, revision int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision > s.revision || revision <= s.compacted {
		return store.ErrCompacted
	}
	kept := s.at(revision)
	var history []store.Event
	for _, kv := range kept {
		history = append(history, store.Event{Type: store.Put, KV: kv})
	}
	sort.Slice(history, func(i, j int) bool { return history[i].KV.Modified < history[j].KV.Modified })
	for _, e := range s.history {
		if e.KV.Modified > revision {
			history = append(history, e)
		}
	}
	s.history, s.compacted = history, revision
	return nil
}

// Compacted implements store.Store.
func (s *Store) Compacted() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compacted
}

// Size implements store.Store: the bytes of all values.
func (s *Store) Size() (total, used int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kv := range s.keys {
		used += int64(len(kv.Key) + len(kv.Value))
	}
	return used, used
}

// Close implements store.Store.
func (s *Store) Close() error { return nil }

// Watch implements store.Store.
func (s *Store) Watch(ctx context.Context, prefix string, after int64) (store.Watch, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{ch: make(chan store.Batch), stop: cancel}
	go w.run(ctx, s, prefix, after)
	return w, nil
}

type watch struct {
	ch   chan store.Batch
	stop context.CancelFunc
	err  error // written before ch closes
}

func (w *watch) Batches() <-chan store.Batch { return w.ch }
func (w *watch) Stop()                       { w.stop() }
func (w *watch) Err() error                  { return w.err }

func (w *watch) run(ctx context.Context, s *Store, prefix string, after int64) {
	defer close(w.ch)
	for {
		s.mu.Lock()
		if after < s.compacted-1 {
			s.mu.Unlock()
			w.err = store.ErrCompacted
			return
		}
		first := sort.Search(len(s.history), func(i int) bool { return s.history[i].KV.Modified > after })
		batch := store.Batch{Revision: s.revision}
		for _, e := range s.history[first:] {
			if strings.HasPrefix(e.KV.Key, prefix) {
				batch.Events = append(batch.Events, e)
			}
		}
		after = max(after, s.revision)
		changed := s.changed
		s.mu.Unlock()
		if len(batch.Events) > 0 {
			select {
			case w.ch <- batch:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// History implements store.Store.
func (s *Store) History(ctx context.Context, prefix string, after int64) (store.Watch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after < s.compacted {
		return nil, store.ErrCompacted
	}
	batch := store.Batch{Revision: s.revision}
	before := s.at(after)
	for _, e := range s.history {
		if e.KV.Modified <= after || !strings.HasPrefix(e.KV.Key, prefix) {
			continue
		}
		if kv, ok := before[e.KV.Key]; ok {
			e.Prev = &kv
		}
		if before[e.KV.Key] = e.KV; e.Type == store.Deletion {
			delete(before, e.KV.Key)
		}
		batch.Events = append(batch.Events, e)
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{ch: make(chan store.Batch), stop: cancel}
	go func() {
		defer close(w.ch)
		select {
		case w.ch <- batch:
		case <-ctx.Done():
		}
	}()
	return w, nil
}
