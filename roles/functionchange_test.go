package roles_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
)

// An update counts for new calls at once, and no call fails meanwhile.
func TestFunctionsChange(t *testing.T) {
	c := newFunctions(t, 18084)
	c.add("says", "import time\ndef main(params):\n    time.sleep(0.05)\n    return 1\n", nil)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var failed atomic.Int64
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if status, body, _ := c.post("/says", ""); status != 200 {
					failed.Add(1)
					t.Logf("%d %s", status, body)
				}
			}
		})
	}
	if status, body, _ := c.post("/says", ""); status != 200 || body != "1" {
		t.Fatalf("%d %q", status, body)
	}
	two := filepath.Join(t.TempDir(), "two.py")
	if err := os.WriteFile(two, []byte("def main(params):\n    return 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.ctl("func", "update", "says", "-p", two)
	c.eventually("the new one answers", func() bool { _, body, _ := c.post("/says", ""); return body == "2" })
	for range 20 {
		if _, body, _ := c.post("/says", ""); body != "2" {
			t.Fatalf("after the new one has answered: %q", body)
		}
	}
	close(stop)
	wg.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d calls failed during the update", n)
	}
}

// A call that runs ends as if nothing happened when there are to be fewer instances, and when its function goes.
func TestFunctionCallsEnd(t *testing.T) {
	c := newFunctions(t, 18093)
	c.add("sleeps", "import time, os\ndef run(arg):\n    time.sleep(float(arg))\n    return os.uname().nodename\n", func(s *minik8s.FunctionSpec) {
		s.Concurrency, s.IdleSeconds, s.MinInstances, s.MaxInstances = 1, 1, 3, 3
	})
	type answer struct {
		status int
		body   string
	}
	long := func(seconds string) chan answer {
		out := make(chan answer, 1)
		go func() {
			resp, err := http.Post("http://"+c.address+"/sleeps", "", strings.NewReader(seconds))
			if err != nil {
				out <- answer{0, err.Error()}
				return
			}
			defer resp.Body.Close()          //nolint:errcheck // it was only read
			text, _ := io.ReadAll(resp.Body) //nolint:errcheck // what came counts
			out <- answer{resp.StatusCode, string(text)}
		}()
		return out
	}
	c.eventually("three that take calls", func() bool {
		f, err := client.Get[*minik8s.Function](t.Context(), c.api, client.Key{Kind: api.Functions, Namespace: "default", Name: "sleeps"})
		return err == nil && f.Status.ReadyInstances == 3
	})
	running := long("20")
	for _, x := range []chan answer{long("0.5"), long("0.5")} {
		<-x
	}
	if _, err := c.api.Patch(t.Context(), client.Key{Kind: api.Functions, Namespace: "default", Name: "sleeps"},
		client.Patch{Type: types.MergePatchType, Data: []byte(`{"spec":{"minInstances":0}}`)}, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	alone := ""
	c.eventually("one instance", func() bool {
		pods := c.instances("sleeps")
		if len(pods) != 1 || pods[0].DeletionTimestamp != nil {
			return false
		}
		alone = pods[0].Name
		return true
	})
	select {
	case x := <-running:
		t.Fatalf("it has ended too soon to say anything: %+v", x)
	default:
	}
	if x := <-running; x.status != 200 || x.body != alone {
		t.Errorf("the call that ran, whose instance is to be %s: %d %q", alone, x.status, x.body)
	}
	running = long("4")
	c.eventually("a call", func() bool {
		return strings.Contains(c.ask("GET", "/metrics", ""), `activator_request_concurrency{namespace_name="default",service_name="sleeps"} 1`) && len(c.instances("sleeps")) > 0
	})
	c.ctl("func", "rm", "sleeps")
	if x := <-running; x.status != 200 {
		t.Errorf("the call that ran when its function went: %d %q", x.status, x.body)
	}
}
