package etcd

import (
	"log/slog"
	"testing"
)

// A member alone leads as soon as it can be written to, also when it is opened again, and nothing changes that.
func TestLeads(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		s, err := Open(t.Context(), Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		leads, changed := s.Leads()
		if !leads {
			t.Error("it does not lead")
		}
		select {
		case <-changed:
			t.Error("the leadership is said to have changed")
		default:
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
