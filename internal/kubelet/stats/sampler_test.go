package stats

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/rates"
)

// busy is a runtime with containers, each of which uses what is said of a core.
type busy struct {
	cores map[string]float64
	began time.Time
	reads int
	rests int // how often the rest of a container was read
	err   error
}

func (b *busy) Stats(_ context.Context, rest func(string) bool) ([]cri.Stats, error) {
	b.reads++
	now := time.Now()
	var out []cri.Stats
	for id, cores := range b.cores {
		if rest("/p/" + id) {
			b.rests++
		}
		used := cri.Usage{CPU: uint64(cores * float64(now.Sub(b.began))), WorkingSet: 1 << 20, Rest: cri.Rest{Processes: uint64(b.rests)}}
		out = append(out, cri.Stats{PodUID: "u", Cgroup: "/p/" + id, Container: "c", ContainerID: id, Time: now, Usage: used})
	}
	return out, b.err
}

func (b *busy) sampler() *Sampler {
	b.began = time.Now()
	s := New(b)
	s.node = func(node *Sample) error {
		node.CPU = uint64(time.Since(b.began)) * 2
		return nil
	}
	return s
}

// millis returns the rate of the only container; -1 for none.
func millis(t *testing.T, s *Sampler, ask Ask) (rate int64, over time.Duration, samples int) {
	t.Helper()
	r, err := s.Read(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Containers) != 1 {
		t.Fatalf("%d containers", len(r.Containers))
	}
	c := &r.Containers[0]
	n, over, ok := c.Rate(ask.Rates)
	if !ok {
		return -1, 0, len(c.Samples)
	}
	return int64(n / 1e6), over, len(c.Samples)
}

func TestTheRestIsReadRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{cores: map[string]float64{"a": 0.5}}
		s := b.sampler()
		for second, want := range []uint64{1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 4, 4} { // of a; of b when it comes; of both after ten seconds
			if second == 4 {
				b.cores["b"] = 0.5
			}
			r, err := s.Read(t.Context(), Ask{MaxAge: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if uint64(b.rests) != want {
				t.Errorf("after %d s the rest was read %d times, want %d", second, b.rests, want)
			}
			for _, c := range r.Containers {
				if c.Last().Processes == 0 {
					t.Errorf("after %d s a sample has no rest", second)
				}
			}
			time.Sleep(time.Second)
		}
	})
}

func TestSamplesAreTakenWhenSomebodyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{cores: map[string]float64{"a": 0.5}}
		s := b.sampler()
		start := time.Now()
		if rate, over, _ := millis(t, s, Ask{Rates: time.Second}); rate != 500 || over != time.Second || time.Since(start) != time.Second || b.reads != 2 {
			t.Errorf("the first question is answered after a second, of two samples: %d over %v, after %v, of %d", rate, over, time.Since(start), b.reads)
		}
		if millis(t, s, Ask{Rates: time.Second}); b.reads != 2 {
			t.Errorf("a question soon after has the same answer: %d reads", b.reads)
		}
		time.Sleep(15 * time.Second)
		b.cores["a"] = 0.5
		if rate, over, _ := millis(t, s, Ask{Rates: time.Second}); rate != 500 || over != 15*time.Second || b.reads != 3 {
			t.Errorf("the next one is answered at once: %d over %v, %d reads", rate, over, b.reads)
		}
		time.Sleep(3 * time.Second)
		if _, _, n := millis(t, s, Ask{MaxAge: 5 * time.Second}); b.reads != 3 || n != 1 {
			t.Errorf("who takes an old answer has the newest sample: %d reads, %d samples", b.reads, n)
		}
		time.Sleep(rates.Longest)
		if rate, over, _ := millis(t, s, Ask{Rates: time.Second}); rate != 500 || over != time.Second {
			t.Errorf("a sample of long ago says nothing of now: %d over %v", rate, over)
		}
		if _, _, n := millis(t, s, Ask{Samples: 100}); n != 5 {
			t.Errorf("the history has %d samples", n)
		}
		time.Sleep(forgotten)
		synctest.Wait()
		if s.series != nil {
			t.Error("nobody asks any more, and it is still known")
		}
	})
}

func TestHistoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{cores: map[string]float64{"a": 1}}
		s := b.sampler()
		longest := 0
		for range 5 * history {
			_, _, n := millis(t, s, Ask{Samples: 1 << 20})
			longest = max(longest, n)
			time.Sleep(time.Second)
		}
		if longest != history {
			t.Errorf("%d samples, want %d", longest, history)
		}
		s.forget.Stop()
	})
}

func TestEndedAndNewContainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{cores: map[string]float64{"a": 1}}
		s := b.sampler()
		millis(t, s, Ask{Rates: time.Second})
		time.Sleep(10 * time.Second)
		delete(b.cores, "a")
		b.cores["b"] = 1
		if rate, _, n := millis(t, s, Ask{Rates: time.Second}); rate != -1 || n != 1 {
			t.Errorf("of a new container no rate is known: %d, %d samples", rate, n)
		}
		b.err = errors.New("no runtime")
		time.Sleep(time.Second)
		if _, err := s.Read(t.Context(), Ask{}); !errors.Is(err, b.err) {
			t.Errorf("error %v", err)
		}
		s.forget.Stop()
	})
}

func TestReadersMayGoAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{cores: map[string]float64{"a": 1}}
		s := b.sampler()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := s.Read(ctx, Ask{Rates: time.Second}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		s.forget.Stop()
	})
}
