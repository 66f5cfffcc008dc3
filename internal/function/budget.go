package function

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/controller/loop"
)

// amount is a number of calls and the bytes that they hold.
type amount struct {
	calls int
	bytes int64
}

// budget bounds what all functions have together. A function may have as much as is still free: alone it gets half, and however much
// some have, there is a part left for one that has nothing.
type budget struct {
	what  string // that there is too much of
	most  amount
	again int // seconds, after which a caller may try again

	mu   sync.Mutex
	used amount
	of   map[loop.Key]amount
}

func newBudget(what string, most amount, again int) *budget {
	return &budget{what: what, most: most, again: again, of: map[loop.Key]amount{}}
}

// take adds to what a function has, or refuses (429).
func (b *budget) take(key loop.Key, n amount) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.of[key]
	switch {
	case n.calls > 0 && own.calls+n.calls > b.most.calls-b.used.calls:
		return apierrors.NewTooManyRequests(fmt.Sprintf("function %s has %d %s, which is its part of the %d that all may have; call again", key.Name, own.calls, b.what, b.most.calls), b.again)
	case n.bytes > 0 && own.bytes+n.bytes > b.most.bytes-b.used.bytes:
		return apierrors.NewTooManyRequests(fmt.Sprintf("%s of function %s hold %d bytes, which is its part of the %d that all may hold; call again", b.what, key.Name, own.bytes, b.most.bytes), b.again)
	}
	b.add(key, n)
	return nil
}

// put adds to what a function has, whatever the bound: it is there already.
func (b *budget) put(key loop.Key, n amount) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(key, n)
}

// give ends what take or put began.
func (b *budget) give(key loop.Key, n amount) { b.put(key, amount{-n.calls, -n.bytes}) }

func (b *budget) add(key loop.Key, n amount) {
	own := b.of[key]
	own.calls, own.bytes = own.calls+n.calls, own.bytes+n.bytes
	b.used.calls, b.used.bytes = b.used.calls+n.calls, b.used.bytes+n.bytes
	if own == (amount{}) {
		delete(b.of, key)
		return
	}
	b.of[key] = own
}

// room is what one call holds of a budget in bytes: what has come of its argument and of results. A nil room counts nothing.
type room struct {
	budget *budget
	key    loop.Key

	mu    sync.Mutex
	bytes int64
}

// take adds n bytes, or refuses (429).
func (r *room) take(n int) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.budget.take(r.key, amount{bytes: int64(n)}); err != nil {
		return err
	}
	r.bytes += int64(n)
	return nil
}

// free gives all back.
func (r *room) free() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.budget.give(r.key, amount{bytes: r.bytes})
	r.bytes = 0
}
