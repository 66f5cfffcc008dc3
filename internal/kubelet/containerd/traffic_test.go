package containerd

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"minik8s/internal/kubelet/cri"
)

// Many pods are looked at at once.
func TestTrafficAtOnce(t *testing.T) {
	tr := newTraffic()
	tr.read = func(pid uint32) *cri.Network { return &cri.Network{Received: uint64(pid)} }
	l := tr.look(time.Now())
	var all sync.WaitGroup
	for i := range uint32(50) {
		all.Go(func() {
			if n := l.of(fmt.Sprint("none", i), i); n.Received != uint64(i) {
				t.Errorf("pod %d has %+v", i, n)
			}
		})
	}
	all.Wait()
	l.end()
	if len(tr.of) != 50 {
		t.Errorf("%d pods are remembered", len(tr.of))
	}
}
