package function

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/controller/loop"
)

// However much one function has, others have a part; and what is given back can be had again.
func TestBudget(t *testing.T) {
	b := newBudget("calls", amount{100, 1000}, 7)
	key := func(name string) loop.Key { return loop.Key{Namespace: "default", Name: name} }
	takes := func(name string, each amount) (n int) {
		for b.take(key(name), each) == nil {
			n++
		}
		return n
	}
	if n := takes("a", amount{calls: 1}); n != 50 {
		t.Errorf("one alone may have %d", n)
	}
	if n := takes("b", amount{calls: 1}); n != 25 {
		t.Errorf("a second one may have %d", n)
	}
	if n := takes("c", amount{calls: 1}); n < 10 {
		t.Errorf("a third one may have %d", n)
	}
	err := b.take(key("a"), amount{calls: 1})
	if s, ok := err.(apierrors.APIStatus); !apierrors.IsTooManyRequests(err) || !ok || s.Status().Details.RetryAfterSeconds != 7 {
		t.Errorf("%v", err)
	}
	if n := takes("a", amount{bytes: 100}); n != 5 {
		t.Errorf("one alone may hold %d00 bytes", n)
	}
	b.put(key("a"), amount{calls: 1000}) // found in the store
	b.give(key("a"), amount{calls: 1049})
	if err := b.take(key("a"), amount{calls: 1}); err != nil {
		t.Errorf("after all but one have ended: %v", err)
	}
	b.give(key("a"), amount{2, 500})
	if _, ok := b.of[key("a")]; ok {
		t.Errorf("what is left of a: %+v", b.of[key("a")])
	}
}
