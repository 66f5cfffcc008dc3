package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"minik8s/internal/api"
	"minik8s/internal/store"
)

// Cache holds every object in its newest version, and the last changes, separately for each kind.
type Cache struct {
	store store.Store
	kinds atomic.Pointer[cachedKinds]

	rev  atomic.Int64 // every change up to this revision is in the cache
	mu   sync.Mutex   // guards wait
	wait chan struct{}

	bookmarks clock
}

// cachedKinds is replaced as a whole when a kind is added.
type cachedKinds struct {
	byKind   map[*api.Kind]*Objects
	byPrefix map[string]*Objects // by the prefix of their keys in the store
}

// Objects are the objects of one kind.
type Objects struct {
	cache  *Cache
	kind   *api.Kind
	prefix string

	mu   sync.RWMutex
	tree *tree
	log  eventLog
	// aging says that age will be called.
	aging bool
	// early are changes that came before the kind was loaded, if it was added while the registry ran.
	early   []store.Event
	loading bool
	loaded  int64 // the revision of the list that the tree began with; earlier changes are in it
	// holds names what an object has to itself, and holders is who has what; see Index.
	holds   func(api.Object) []string
	holders map[string]*Entry
	// siblings is how its objects share memory; nil if they are kept as bytes.
	siblings *siblings
	// implies are the kinds that objects of this one imply objects of.
	implies []*Objects
	// written are objects on their way into the store, by key. The watch returns the same bytes, which then need not
	// be decoded.
	written sync.Map // string -> *handover
}

type handover struct {
	raw []byte
	obj api.Object
}

// New returns a cache over a store, for these kinds, whose quiet watches get a bookmark so often. It is empty until Run
// calls ready.
func New(s store.Store, kinds []*api.Kind, bookmarks time.Duration) *Cache {
	c := &Cache{store: s, wait: make(chan struct{}), bookmarks: clock{every: bookmarks}}
	c.kinds.Store(&cachedKinds{})
	for _, k := range kinds {
		c.put(c.newObjects(k))
	}
	for _, k := range kinds {
		if k.Implied != nil {
			for _, by := range k.Implied.By {
				c.Of(by).implies = append(c.Of(by).implies, c.Of(k))
			}
		}
	}
	return c
}

func (c *Cache) newObjects(k *api.Kind) *Objects {
	kc := &Objects{cache: c, kind: k, prefix: PrefixOf(k), tree: newTree(k)}
	if !k.AsBytes {
		kc.siblings = newSiblings(k)
	}
	kc.log.init()
	return kc
}

// put adds a kind. Kinds are added one at a time.
func (c *Cache) put(kc *Objects) {
	have := c.kinds.Load()
	next := &cachedKinds{byKind: maps.Clone(have.byKind), byPrefix: maps.Clone(have.byPrefix)}
	if next.byKind == nil {
		next.byKind, next.byPrefix = map[*api.Kind]*Objects{}, map[string]*Objects{}
	}
	next.byKind[kc.kind], next.byPrefix[kc.prefix] = kc, kc
	c.kinds.Store(next)
}

// Drop removes a kind.
func (c *Cache) Drop(kind *api.Kind) {
	have := c.kinds.Load()
	next := &cachedKinds{byKind: maps.Clone(have.byKind), byPrefix: maps.Clone(have.byPrefix)}
	delete(next.byKind, kind)
	delete(next.byPrefix, PrefixOf(kind))
	c.kinds.Store(next)
}

// Of returns the objects of a kind; nil if the kind is not cached.
func (c *Cache) Of(kind *api.Kind) *Objects { return c.kinds.Load().byKind[kind] }

// Add loads the objects of another kind while the cache runs, and follows them from then on. holds, which may be nil, is
// as in Index.
func (c *Cache) Add(ctx context.Context, kind *api.Kind, holds func(api.Object) []string) error {
	kc := c.newObjects(kind)
	kc.Index(holds)
	kc.loading = true
	c.put(kc) // first, so that no change falls between the list and the watch
	page, err := c.store.List(ctx, kc.prefix, "", 0, 0)
	if err != nil {
		return err
	}
	kc.mu.Lock()
	defer kc.mu.Unlock()
	if !kc.loading {
		return nil // meanwhile the whole cache was loaded again
	}
	for _, kv := range page.KVs {
		kc.tree.fill(kc.stored(kv))
	}
	kc.tree.compressAll()
	kc.reindex()
	kc.log.restart(page.Revision)
	early := kc.early
	kc.early, kc.loading, kc.loaded = nil, false, page.Revision
	for i := range early {
		kc.follow(&early[i])
	}
	return nil
}

// stored returns an entry that was read from the store.
func (kc *Objects) stored(kv store.KV) *Entry {
	return &Entry{kind: kc.kind, key: kv.Key[len(kc.prefix):], rev: kv.Modified, text: kv.Value, siblings: kc.siblings}
}

// majorityPause is how long a cache waits before it asks again a store that has lost its majority. The store itself waits
// for some seconds.
const majorityPause = 100 * time.Millisecond

// Run reads everything, then follows the store until ctx ends. ready is called when the cache is complete. When the
// store's history is compacted it reads everything again. It waits for a store that has lost its majority.
func (c *Cache) Run(ctx context.Context, log *slog.Logger, ready func()) error {
	for {
		rev, err := c.load(ctx)
		if errors.Is(err, store.ErrUnavailable) {
			log.Warn("the store cannot be read yet", "error", err)
			select {
			case <-time.After(majorityPause):
				continue
			case <-ctx.Done():
				return nil
			}
		}
		if err != nil {
			return err
		}
		// Watch everything, not only the keys below Root: reads wait until the cache has reached the store's
		// revision, and writes elsewhere advance it too.
		w, err := c.store.Watch(ctx, "", rev)
		if err != nil {
			return err
		}
		ready()
		for batch := range w.Batches() {
			c.apply(batch)
		}
		w.Stop()
		if ctx.Err() != nil {
			return nil
		}
		if !errors.Is(w.Err(), store.ErrCompacted) {
			return errors.Join(errors.New("the watch on the store ended"), w.Err())
		}
		log.Warn("the store's history was compacted before it was read; reading everything again")
	}
}

// load replaces the whole cache with the contents of the store. Open watches end with 410, because the changes in
// between are not known.
func (c *Cache) load(ctx context.Context) (int64, error) {
	page, err := c.store.List(ctx, Root, "", 0, 0)
	if err != nil {
		return 0, err
	}
	trees := map[*Objects]*tree{}
	kinds := c.kinds.Load()
	for _, kc := range kinds.byKind {
		trees[kc] = newTree(kc.kind)
	}
	for _, kv := range page.KVs {
		if kc := kinds.place(kv.Key); kc != nil {
			trees[kc].fill(kc.stored(kv))
		}
	}
	for kc, tree := range trees {
		for _, of := range kc.implies {
			tree.Ascend(func(e *Entry) bool {
				if i := of.impliedBy(e); i != nil {
					trees[of].fill(i)
				}
				return true
			})
		}
	}
	for kc, tree := range trees {
		tree.compressAll()
		kc.mu.Lock()
		kc.tree, kc.early, kc.loading, kc.loaded = tree, nil, false, page.Revision
		if kc.siblings != nil {
			kc.siblings.forgetAll()
		}
		kc.reindex()
		kc.log.restart(page.Revision)
		kc.mu.Unlock()
	}
	c.advance(page.Revision)
	return page.Revision, nil
}

// place finds the kind that a key of the store belongs to; nil if there is none.
func (k *cachedKinds) place(key string) *Objects {
	rest, ok := strings.CutPrefix(key, Root)
	if !ok {
		return nil
	}
	i := strings.IndexByte(rest, '/')
	if i < 0 {
		return nil
	}
	if kc := k.byPrefix[key[:len(Root)+i+1]]; kc != nil {
		return kc
	}
	if j := strings.IndexByte(rest[i+1:], '/'); j >= 0 {
		return k.byPrefix[key[:len(Root)+i+1+j+1]]
	}
	return nil
}

// apply applies a batch of changes, in order.
func (c *Cache) apply(batch store.Batch) {
	kinds := c.kinds.Load()
	for i := range batch.Events {
		if kc := kinds.place(batch.Events[i].KV.Key); kc != nil {
			kc.apply(&batch.Events[i])
		}
	}
	c.advance(batch.Revision)
}

func (kc *Objects) apply(e *store.Event) {
	kc.mu.Lock()
	defer kc.mu.Unlock()
	if kc.loading {
		kc.early = append(kc.early, *e)
		return
	}
	kc.follow(e)
}

// follow applies one change. The caller holds mu.
func (kc *Objects) follow(e *store.Event) {
	if e.KV.Modified <= kc.loaded {
		return
	}
	key := e.KV.Key[len(kc.prefix):]
	var next, prev *Entry
	if e.Type == store.Put {
		next = kc.stored(e.KV)
		prev = kc.tree.put(next)
		if h, ok := kc.written.Load(key); ok && bytes.Equal(h.(*handover).raw, e.KV.Value) {
			next.take(h.(*handover).obj, prev)
			kc.written.CompareAndDelete(key, h)
		}
	} else {
		prev = kc.tree.drop(key)
	}
	if prev != nil {
		prev.end()
	}
	kc.indexed(prev, next)
	if next != nil || prev != nil {
		kc.record(change{prev: prev, next: next, rev: e.KV.Modified})
	}
	for _, of := range kc.implies {
		of.implied(prev, next, e.KV.Modified)
	}
}

func (c *Cache) advance(rev int64) {
	c.mu.Lock()
	if rev > c.rev.Load() {
		c.rev.Store(rev)
	}
	close(c.wait)
	c.wait = make(chan struct{})
	c.mu.Unlock()
}

// Current returns once the cache has every write that was acknowledged before the call.
func (c *Cache) Current(ctx context.Context) error {
	rev, err := c.store.Revision(ctx)
	if err != nil {
		return err
	}
	return c.Reach(ctx, rev)
}

// Reach returns once the cache has every change up to a revision.
func (c *Cache) Reach(ctx context.Context, rev int64) error {
	for c.rev.Load() < rev {
		c.mu.Lock()
		wait := c.wait
		c.mu.Unlock()
		if c.rev.Load() >= rev {
			return nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Get returns an object by its key; nil if it does not exist.
func (kc *Objects) Get(key string) *Entry {
	kc.mu.RLock()
	defer kc.mu.RUnlock()
	e, _ := kc.tree.Get(&Entry{key: key})
	return e
}

// Snapshot returns every entry of a namespace ("" is all) after a key, in order, and the revision that they all
// belong to.
func (kc *Objects) Snapshot(namespace, after string) ([]*Entry, int64) {
	var out []*Entry
	if namespace == "" && after == "" {
		kc.mu.RLock()
		out = make([]*Entry, 0, kc.tree.Len())
		kc.mu.RUnlock()
	}
	rev := kc.scan(namespace, after, func(e *Entry) bool {
		out = append(out, e)
		return true
	})
	return out, rev
}

// scan passes the entries of Snapshot to show one by one, as long as show returns true.
func (kc *Objects) scan(namespace, after string, show func(*Entry) bool) int64 {
	kc.mu.RLock()
	defer kc.mu.RUnlock()
	// The log is appended under the same lock, so its revision is at least that of every entry here. c.rev may
	// already be higher; it holds for this kind too, because it is read first.
	rev := max(kc.cache.rev.Load(), kc.log.last)
	from, to := after, ""
	if namespace != "" {
		from, to = max(after, namespace+"/"), namespace+"0" // '0' follows '/'
	}
	kc.tree.AscendGreaterOrEqual(&Entry{key: from}, func(e *Entry) bool {
		if to != "" && e.key >= to {
			return false
		}
		return e.key == after || show(e)
	})
	return rev
}

// unchangedSince reports whether no object of the kind has changed after a revision, as far as the cache has read.
func (kc *Objects) unchangedSince(rev int64) bool {
	kc.mu.RLock()
	defer kc.mu.RUnlock()
	return kc.log.last <= rev
}

// Len returns the number of objects.
func (kc *Objects) Len() int {
	kc.mu.RLock()
	defer kc.mu.RUnlock()
	return kc.tree.Len()
}

// Revision returns the revision of the newest change in the cache.
func (c *Cache) Revision() int64 { return c.rev.Load() }

// Write makes all changes in one transaction: the object's bytes, and whatever else has to change with it. It leaves
// the decoded object where the watch finds it. obj becomes shared, and as precise as its bytes. The error is the store's own.
func (kc *Objects) Write(ctx context.Context, key string, obj api.Object, raw []byte, changes ...store.Change) (*Entry, error) {
	settle(obj)
	// The cached object gets its revision in the watch's goroutine, the caller's object in this one. So there are two
	// objects, which share everything but the outermost struct.
	h := &handover{raw: raw}
	if !kc.kind.AsBytes {
		h.obj = Shallow(obj)
		kc.written.Store(key, h)
	}
	rev, err := kc.cache.store.Write(ctx, changes...)
	if err != nil {
		kc.written.CompareAndDelete(key, h)
		return nil, err
	}
	// Drop it if the watch has passed this revision without using it (another write of the key came in between).
	if kc.cache.rev.Load() >= rev {
		kc.written.CompareAndDelete(key, h)
	}
	return NewEntry(kc.kind, key, rev, raw, obj), nil
}

// CheckShared reports shared objects that were changed, which is never allowed, and those that are not what their bytes say.
// registrytest calls it at the end of every test.
func (c *Cache) CheckShared() error {
	var errs []error
	for kind, kc := range c.kinds.Load().byKind {
		entries, _ := kc.Snapshot("", "")
		for _, e := range entries {
			obj := e.obj.Load()
			if obj == nil {
				continue
			}
			raw, err := Encode(kind, (*obj).DeepCopyObject().(api.Object))
			if err != nil || !e.Equal(raw) {
				errs = append(errs, fmt.Errorf("%s %s was changed by a reader: it is now %s, stored is %s (%v)", kind, e.key, raw, e.plain(), err))
			}
			read := (&Entry{kind: kind, key: e.key, rev: e.rev, text: e.plain()}).Object()
			if !equality.Semantic.DeepEqual(read, *obj) {
				errs = append(errs, fmt.Errorf("%s %s in memory is not what its bytes say:\n%+v\n%+v", kind, e.key, *obj, read))
			}
		}
	}
	return errors.Join(errs...)
}
