package hosts_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"minik8s/internal/hosts/history"
)

// What masters promise their clients holds through faults by chance. "make faults" does more of them. HISTORY_SEED does
// those of an earlier run again.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name                      string
		masters, faults, perRound int
	}{{"three", 3, 50, 25}, {"four, of which one learns", 4, 20, 20}, {"one", 1, 10, 10}} {
		t.Run(c.name, func(t *testing.T) {
			lab := newLab(t)
			seed := uint64(time.Now().UnixNano())
			if s := os.Getenv("HISTORY_SEED"); s != "" {
				var err error
				if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
					t.Fatal(err)
				}
			}
			masters, err := history.Masters(t.Context(), lab, c.masters)
			if err != nil {
				t.Fatal(err)
			}
			report, err := history.Run(t.Context(), lab, masters, history.Options{Faults: c.faults, PerRound: c.perRound, Seed: seed, Dir: "../../build/faults"})
			t.Logf("seed %d: %s", seed, report)
			if err != nil {
				t.Fatal(err)
			}
			if report.Ops < 10*c.faults || report.Events == 0 { // or it says nothing
				t.Error("the clients did hardly anything")
			}
		})
	}
}
