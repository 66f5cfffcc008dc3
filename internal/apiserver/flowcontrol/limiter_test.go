package flowcontrol

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/registry"
)

// TestLimiterForgetsUsers: who has nothing under way is not counted, also after a refusal.
func TestLimiterForgetsUsers(t *testing.T) {
	l := NewLimiter(Limits{Units: 8, Long: 8, Users: 4, Heaviest: 1, MaxWait: time.Millisecond})
	for _, long := range []bool{false, true} {
		var leave []func()
		for _, user := range []string{"a", "a", "b", "b"} {
			free, err := l.Enter(t.Context(), registry.User{Name: user}, 1, long)
			if err != nil {
				t.Fatal(err)
			}
			leave = append(leave, free)
		}
		if _, err := l.Enter(t.Context(), registry.User{Name: "a"}, 1, long); !apierrors.IsTooManyRequests(err) {
			t.Errorf("one user has more than a part: %v", err)
		}
		for _, free := range leave {
			free()
		}
	}
	for _, s := range append(l.short[:], l.long[:]...) {
		if len(s.users) != 0 {
			t.Errorf("something is still counted: %v", s.users)
		}
	}
	if n := l.Inflight(); n != 0 {
		t.Errorf("%d requests are under way", n)
	}
}
