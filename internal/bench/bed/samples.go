package bed

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Samples are the times of an operation that was done many times.
type Samples []time.Duration

// P returns a percentile.
func (s Samples) P(percent int) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Clone(s)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

// Ms is a time in milliseconds.
func Ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Connections is how many requests are under way at a time.
const Connections = 16

// Hammer calls do n times over several connections and returns the rate and the times.
func Hammer(n int, do func(i int) error) (perSecond float64, times Samples, err error) {
	var next atomic.Int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	began := time.Now()
	for range Connections {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var own Samples
			for {
				i := int(next.Add(1))
				if i > n {
					break
				}
				t := time.Now()
				if e := do(i); e != nil {
					mu.Lock()
					err = e
					mu.Unlock()
					return
				}
				own = append(own, time.Since(t))
			}
			mu.Lock()
			times = append(times, own...)
			mu.Unlock()
		}()
	}
	wg.Wait()
	return float64(n) / time.Since(began).Seconds(), times, err
}

// Calibrate measures how long this machine takes to write and sync 1 kB. A write cannot be faster.
func Calibrate(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "sync")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // in a directory that goes
	defer f.Close()           //nolint:errcheck // as above
	var times Samples
	buf := make([]byte, 1024)
	for range 50 {
		began := time.Now()
		if _, err := f.Write(buf); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(began))
	}
	return times.P(50), nil
}
