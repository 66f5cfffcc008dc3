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
