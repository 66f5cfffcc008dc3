package hosts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"minik8s/internal/hosts"
	"minik8s/internal/logind/logindtest"
	"minik8s/internal/machine"
)

// TestMain gives the tests a network of their own, and removes what an interrupted run leaves.
func TestMain(m *testing.M) { machine.Run(m.Run) }

// built is the daemon as users run it.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "minik8s-built-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "minik8sd")
	if out, err := exec.Command("go", "build", "-o", path, "minik8s").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func newLab(t *testing.T) *hosts.Lab {
	t.Helper()
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("hosts with real containers need root, and more time than -short has")
	}
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	lab, err := hosts.New(binary, "../../build/images")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	})
	return lab
}

// Every scenario of testdata comes to its end. Several are played at a time: each has a network of its own, and waits most
// of the time.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("../../testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, f := range files {
		s, err := hosts.Read(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := s.Play(context.Background(), newLab(t), &out)
			t.Log("\n" + out.String())
			if errors.Is(err, logindtest.ErrNoBus) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A line that cannot be played is named when the file is read, or when it is its turn.
func TestMistakesAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"host a\n\nhots b # a slip": "x.txt:3: there is no step \"hots\"",
		"start a":                   "x:1: start a: there is no host a",
		"expect nodes a Ready":      "nothing is known about \"nodes\"",
		"within soon":               "x:1: within soon",
		"host a\ncut a off":         "\"off\" is no direction: from or to",
		"host a\nloss a much":       "\"much\" is no number",
		"host a\nloss a 101 to":     "101% cannot be lost",
		"host":                      "too few words",
	} {
		path := filepath.Join(t.TempDir(), "x.txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := hosts.Read(path)
		if err == nil {
			err = s.Play(context.Background(), newLab(t), &bytes.Buffer{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
