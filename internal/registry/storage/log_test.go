package storage

import (
	"testing"
	"testing/synctest"
	"time"
)

// The changes of a kind that is not written to any more are forgotten after a while, and a watch from before goes to the
// store for them.
func TestLogOfAQuietKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kc := &Objects{}
		kc.log.init()
		write := func(rev int64) {
			kc.mu.Lock()
			defer kc.mu.Unlock()
			kc.record(change{rev: rev})
		}
		write(1)
		time.Sleep(maxLogAge / 2)
		write(2)
		time.Sleep(maxLogAge / 2)
		synctest.Wait()
		if _, ok := kc.cursorAt(1); !ok {
			t.Error("a change is forgotten too early")
		}
		time.Sleep(2 * maxLogAge)
		synctest.Wait()
		if n := len(kc.log.changes); n != 0 || kc.log.bytes != 0 {
			t.Errorf("%d changes of %d bytes are kept for good", n, kc.log.bytes)
		}
		if _, ok := kc.cursorAt(1); ok {
			t.Error("a watch would miss a change")
		}
		if _, ok := kc.cursorAt(2); !ok {
			t.Error("a watch that has seen all is sent to the store")
		}
		write(3)
		time.Sleep(3 * maxLogAge)
		synctest.Wait()
		if n := len(kc.log.changes); n != 0 {
			t.Errorf("after a pause %d changes are kept for good", n)
		}
	})
}
