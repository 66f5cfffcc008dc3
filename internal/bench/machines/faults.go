package machines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"minik8s/internal/bench/bed"
	"minik8s/internal/hosts/history"
)

// Faults does so many faults by chance to three masters that clients use, and fails if anything that was acknowledged is lost,
// or a watch or a read is wrong. "make faults" does a thousand.
func Faults(r *bed.Report, n int) (err error) {
	_, lab, err := newLab()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	ctx := context.Background()
	masters, err := history.Masters(ctx, lab, 3)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "minik8s-faults-")
	if err != nil {
		return err
	}
	seed := uint64(time.Now().UnixNano())
	did, err := history.Run(ctx, lab, masters, history.Options{Faults: n, Seed: seed, Dir: dir, Long: true})
	if err != nil {
		return fmt.Errorf("seed %d, recorded in %s: %w", seed, dir, err)
	}
	done := 0
	for _, times := range did.Faults {
		done += times
	}
	r.Add("faults by chance survived with nothing lost", float64(done), "", "1000",
		fmt.Sprintf("in %s; a thousand are -faults=1000, or make faults", did.Took.Round(time.Second)))
	return os.RemoveAll(dir)
}
