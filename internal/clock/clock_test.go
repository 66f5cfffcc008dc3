package clock_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"minik8s/internal/clock"
)

// users are the packages in which each time is the time of day.
var users = []string{"certs", "identity", "bootstrap", "tokens", "registry/serviceaccount", "registry/strategy", "apiserver/authentication",
	"controller/certificates", "controller/tokencleaner", "controller/expire", "controller/nodelifecycle", "controller/tainteviction", "controller/podgc",
	"controller/podautoscaler"}

var machineTime = regexp.MustCompile(`\b(time\.Now|time\.Until|metav1\.Now)\b`)

func TestTheTimeOfDayHasOneSource(t *testing.T) {
	for _, u := range users {
		files, err := filepath.Glob(filepath.Join("..", u, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", u, err)
		}
		for _, f := range files {
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if found := machineTime.Find(src); found != nil && !strings.HasSuffix(f, "_test.go") {
				t.Errorf("%s uses %s: the time of day comes from package clock", f, found)
			}
		}
	}
}

func TestSkew(t *testing.T) {
	defer clock.Skew(0)
	began := time.Now()
	clock.Skew(-48 * time.Hour)
	if ahead := clock.Now().Sub(began); ahead > -47*time.Hour || !clock.Of(began).Equal(began.Add(-48*time.Hour)) {
		t.Errorf("a clock that is two days behind is %s ahead", ahead)
	}
}
