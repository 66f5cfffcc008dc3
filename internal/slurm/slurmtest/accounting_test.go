package slurmtest

import (
	"strings"
	"testing"
	"time"
)

// TestAccounting is about sacct, which is there, absent and back.
func TestAccounting(t *testing.T) {
	t.Parallel()
	began := time.Now()
	c := Start(t, Options{Accounting: true, Nodes: 1, MinJobAge: 2})
	t.Logf("it started in %v", time.Since(began))
	if out := c.Do("sbatch --wait --wrap 'exit 3'"); !strings.Contains(out, "Submitted batch job 1") {
		t.Fatal(out)
	}
	const ask = "sacct -nPX -j 1 -o JobID,State,ExitCode"
	eventually(t, "sacct knows the job", func() (bool, string) {
		out := c.Do(ask)
		return out == "1|FAILED|3:0", out
	})
	c.Stop("slurmdbd")
	if out := c.Do(ask); !strings.Contains(out, "exit status") {
		t.Errorf("sacct without a slurmdbd: %s", out)
	}
	if out := c.Do("sbatch --wait --wrap 'exit 4'"); !strings.Contains(out, "Submitted batch job 2") {
		t.Errorf("sbatch without a slurmdbd: %s", out)
	}
	c.Stop("mariadbd")
	c.Begin("mariadbd")
	c.Begin("slurmdbd")
	eventually(t, "sacct hears of the job that it missed", func() (bool, string) {
		out := c.Do(strings.ReplaceAll(ask, "-j 1", "-j 1,2"))
		return out == "1|FAILED|3:0\n2|FAILED|4:0", out
	})
	c.Before("sacct", "echo 'sacct: not now' >&2; exit 7")
	if out := c.Do(ask); out != "sacct: not now (exit status 7)" {
		t.Errorf("a sacct that fails: %s", out)
	}
}

// eventually waits until a condition holds; ok says so, and what is the case.
func eventually(t *testing.T, what string, ok func() (bool, string)) {
	t.Helper()
	last := ""
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		is, now := ok()
		if is {
			return
		}
		last = now
	}
	t.Fatalf("never: %s\n%s", what, last)
}
