package slurmtest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"minik8s/internal/machine"
)

// TestNothingIsLeft ends a test with a cluster in every way, in a process of its own, while a job runs. Nothing is left of it.
func TestNothingIsLeft(t *testing.T) {
	if how := os.Getenv("SLURMTEST_END"); how != "" {
		end(t, how)
		return
	}
	probe := Start(t, Options{}) // where there can be no cluster, the test is skipped
	if len(left(probe.dir)) == 0 {
		t.Fatal("nothing of a cluster is found while it runs")
	}
	for _, how := range []string{"well", "panic", "kill"} {
		t.Run(how, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe", "-test.run=^TestNothingIsLeft$")
			cmd.Env = append(os.Environ(), "SLURMTEST_END="+how)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := machine.StartChild(cmd); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill() //nolint:errcheck // it has ended
			dir := ""
			for lines := bufio.NewScanner(out); dir == "" && lines.Scan(); {
				dir, _ = strings.CutPrefix(lines.Text(), "dir ")
				if dir == lines.Text() {
					dir = ""
				}
			}
			if dir == "" {
				t.Fatal("the cluster did not start")
			}
			if how == "kill" {
				cmd.Process.Kill() //nolint:errcheck // it runs
			}
			cmd.Wait() //nolint:errcheck // it may have been killed
			eventually(t, "nothing is left", func() (bool, string) { l := left(dir); return len(l) == 0, strings.Join(l, "\n") })
		})
	}
}

// end starts a cluster and ends in the way that is asked for.
func end(t *testing.T, how string) {
	c := Start(t, Options{})
	c.Do("sbatch --wrap 'sleep 600'")
	eventually(t, "the job's process runs", func() (bool, string) { s := c.Root("pgrep -c sleep"); return s == "2", s })
	fmt.Println("dir " + c.dir)
	switch how {
	case "panic":
		panic("as a test may")
	case "kill":
		select {}
	}
}

// left is what there is of a cluster: its directory, its cgroup, and processes that are in the cgroup, have it in their command
// line, or have its mounts.
func left(dir string) []string {
	var left []string
	for _, path := range []string{dir, "/sys/fs/cgroup/memory/" + filepath.Base(dir)} {
		if _, err := os.Lstat(path); err == nil {
			left = append(left, path)
		}
	}
	for _, file := range []string{"cmdline", "mountinfo", "cgroup"} {
		paths, _ := filepath.Glob("/proc/[0-9]*/" + file) //nolint:errcheck // the pattern is good
		for _, p := range paths {
			if b, err := os.ReadFile(p); err == nil && strings.Contains(string(b), filepath.Base(dir)) {
				left = append(left, p)
			}
		}
	}
	return left
}
