package containerd
import "testing"
func TestBurst(t *testing.T) { b := newBench(t); b.rest(); up, down := b.parallel(100, func() {}); t.Log(up, down) }
