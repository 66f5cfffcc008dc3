package space

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// Writers do not outrun a measurement that takes long, however many there are: etcd would meet a full disk.
func TestWritersWaitForTheMeasurement(t *testing.T) {
	s := &Space{began: time.Now(), segment: 1 << 20}
	s.mu.Lock() // a measurement is under way
	const writers, n = 8, 1 << 10
	for range writers {
		go func() {
			for s.admitted.Load() < 100*s.between() && s.Admit(n, false) == nil {
			}
		}()
	}
	for stacks := make([]byte, 1<<20); ; runtime.Gosched() { // until all of them wait, or have written it all
		waiting := 0
		for g := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if strings.Contains(g, "(*Space).Admit") && strings.Contains(g, "sync.Mutex.Lock") {
				waiting++
			}
		}
		if total := s.admitted.Load(); waiting == writers {
			if most := 2*s.between() + writers*n; total > most {
				t.Errorf("%d bytes were admitted, %d may be", total, most)
			}
			break
		} else if total >= 100*s.between() {
			t.Fatal("they did not wait at all")
		}
	}
	s.mu.Unlock()
}
