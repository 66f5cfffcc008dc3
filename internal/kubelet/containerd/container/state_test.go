package container

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"minik8s/internal/kubelet/cri"
)

// A container ends once, however often its end is heard of, and what is on the disk says the same.
func TestAnEndIsReportedOnce(t *testing.T) {
	changed, damaged := 0, []string(nil)
	s := New(t.Context(), Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		Changed: func(*Container) { changed++ }, Damaged: func(image string) { damaged = append(damaged, image) }})
	began := time.Now()
	for _, x := range []struct {
		id      string
		code    int32
		after   time.Duration
		damaged bool
	}{{"fine", 0, time.Second, false}, {"quick", 127, time.Second, true}, {"late", 127, time.Minute, false}} {
		changed, damaged = 0, nil
		c := s.container(Meta{ID: x.id, Image: "busybox"})
		if _, err := c.advance(cri.Running, func(s *state) { s.StartedAt = began }); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			c.ended(x.code, began.Add(x.after))
		}
		if again, err := c.advance(cri.Exited, func(s *state) { s.ExitCode = 9 }); again || err != nil {
			t.Errorf("%s: it ends again: %v", x.id, err)
		}
		<-c.Exited()
		if got := c.Report(); got.State != cri.Exited || got.ExitCode != x.code || changed != 1 || len(damaged) == 1 != x.damaged {
			t.Errorf("%s: %+v, reported %d times, damaged %v", x.id, got, changed, damaged)
		}
		var stored state
		data, err := os.ReadFile(filepath.Join(s.dir(x.id), "state.json"))
		if err == nil {
			err = json.Unmarshal(data, &stored)
		}
		if err != nil || stored.State != cri.Exited || stored.ExitCode != x.code {
			t.Errorf("%s is stored as %+v, %v", x.id, stored, err)
		}
	}
	c := s.container(Meta{ID: "discarded"})
	changed = 0
	if err := c.markDiscarded(); err != nil {
		t.Fatal(err)
	}
	c.ended(137, began)
	<-c.Exited()
	if got := c.Report(); got.State != cri.Created || changed != 0 {
		t.Errorf("the end of one that never ran: %+v, reported %d times", got, changed)
	}
}
