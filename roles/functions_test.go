package roles_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
)

// caller calls functions as people do, on the port for calls.
type caller struct {
	*process
	api     client.Interface
	address string
}

// functionBase are the arguments by which a daemon has functions; the test is skipped where there is no image for them.
func functionBase(t *testing.T) []string {
	t.Helper()
	base, err := filepath.Abs("../build/functions/python.tar")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(base); err != nil {
		t.Skip("no image with Python: ", err)
	}
	return []string{"--function-base", base}
}

func newFunctions(t *testing.T, port int, args ...string) *caller {
	t.Helper()
	needRoot(t)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	p := newProcess(t, append(append(functionBase(t), "--function-address", address), args...)...)
	return &caller{p, p.up(), address}
}

// post calls, and returns status, body and headers.
func (c *caller) post(path, body string) (int, string, http.Header) {
	c.t.Helper()
	resp, err := http.Post("http://"+c.address+path, "application/json", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

// ctl runs ctl, and wants it to succeed.
func (c *caller) ctl(args ...string) string {
	c.t.Helper()
	out, err := c.command(append([]string{"ctl"}, args...)...)
	if err != nil {
		c.t.Fatalf("ctl %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(out)
}

func (c *caller) add(name, source string, change func(*minik8s.FunctionSpec)) {
	c.t.Helper()
	f := &minik8s.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: minik8s.FunctionSpec{Source: source}}
	if change != nil {
		change(&f.Spec)
	}
	if _, err := c.api.Create(context.Background(), f, client.WriteOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *caller) instances(derived string) []*corev1.Pod {
	c.t.Helper()
	pods, _, err := client.All[*corev1.Pod](context.Background(), c.api, api.Pods, client.ListOptions{Namespace: "default",
		Labels: labels.SelectorFromSet(labels.Set{minik8s.FunctionLabel: derived})})
	if err != nil {
		c.t.Fatal(err)
	}
	return pods
}

// The first seed system's function and commands, and whose fault an error is.
func TestFunctions(t *testing.T) {
	c := newFunctions(t, 18081)
	c.ctl("func", "add", "-f", "addFive", "-p", "../testdata/functions/addFive.py")
	if out := c.ctl("trigger", "addFive", "-d", `{"x": 100}`); !strings.HasSuffix(out, `result: {"x": 105}`) || !strings.Contains(out, "Called function addFive:") {
		t.Errorf("trigger: %q", out)
	}
	if out := c.ctl("func", "call", "addFive", `{"x": 1}`); out != `{"x": 6}` {
		t.Errorf("call: %q", out)
	}
	if out := c.ctl("func", "get"); !strings.Contains(out, "addFive") || !strings.Contains(out, "True") {
		t.Errorf("get: %q", out)
	}
	for _, x := range []struct {
		what, path, body string
		status           int
		fault, says      string
	}{
		{"a traceback", "/addFive", `{"y": 1}`, 500, "function", "KeyError: 'x'"},
		{"no JSON", "/addFive", `x`, 400, "caller", "not JSON"},
		{"no such function", "/none", ``, 404, "caller", "no such function none"},
		{"another namespace", "/elsewhere/addFive", ``, 404, "caller", "no such function addFive"},
	} {
		status, body, h := c.post(x.path, x.body)
		if status != x.status || h.Get("X-Minik8s-Fault") != x.fault || !strings.Contains(body, x.says) {
			t.Errorf("%s: %d %q %q", x.what, status, h.Get("X-Minik8s-Fault"), body)
		}
	}
	// A call's trace goes from its caller to the log of the instance, and into the record; and calls are counted.
	req, err := http.NewRequest(http.MethodPost, "http://"+c.address+"/addFive?wait=0s", strings.NewReader(`{"y": 2}`))
	if err != nil {
		t.Fatal(err)
	}
	const trace = "0af7651916cd43dd8448eb211c80319c"
	req.Header.Set("traceparent", "00-"+trace+"-b7ad6b7169203331-01")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close() //nolint:errcheck // its head counts
	id := answer.Header.Get("X-Minik8s-Call")
	c.eventually("the record of a trace", func() bool {
		f, err := client.Get[*minik8s.FunctionCall](t.Context(), c.api, client.Key{Kind: api.FunctionCalls, Namespace: "default", Name: id})
		return err == nil && f.Status.Trace == trace && f.Status.Fault == "function"
	})
	c.eventually("the trace in the log", func() bool {
		out, _ := c.command("ctl", "func", "logs", "addFive") //nolint:errcheck // an instance may be about to go
		return strings.Contains(out, "call "+id+" trace "+trace+" function after")
	})
	if _, _, h := c.post("/addFive", `{"x": 1}`); len(h.Get("Traceparent")) != 55 {
		t.Errorf("a call without a trace has %q", h.Get("Traceparent"))
	}
	// Who waits for his call leaves a record in memory: its result can be asked for again, and who, when and how are listed.
	_, _, h := c.post("/addFive", `{"z": 1}`)
	if out, err := c.command("ctl", "func", "result", h.Get("X-Minik8s-Call")); err == nil || !strings.Contains(out, "KeyError: 'x'") {
		t.Errorf("the result of a call that failed: %q, %v", out, err)
	}
	_, _, h = c.post("/addFive", `{"x": 7}`)
	if out := c.ctl("func", "result", h.Get("X-Minik8s-Call")); out != `{"x": 12}` {
		t.Errorf("the result of a call: %q", out)
	}
	if out := c.ask("GET", "/api/funcs/"+h.Get("X-Minik8s-Call"), ""); strings.TrimSpace(out) != `{"x": 12}` {
		t.Errorf("by the seed's route: %q", out)
	}
	if out, err := c.command("ctl", "func", "result", "call-none"); err == nil || !strings.Contains(out, "not found") {
		t.Errorf("of no call: %q, %v", out, err)
	}
	if out := c.ctl("func", "calls", "addFive"); !regexp.MustCompile(`(?m)^`+h.Get("X-Minik8s-Call")+` +\S+ +127\.0\.0\.1:\d+ +[\d.µm]+s +[\d.µm]+s +warm +200$`).MatchString(out) ||
		!strings.Contains(out, "500 function: KeyError: 'x'") || !regexp.MustCompile(` root +.* cold +200`).MatchString(out) {
		t.Errorf("calls: %s", out)
	}
	c.eventually("instances that take calls", func() bool {
		f, err := client.Get[*minik8s.Function](t.Context(), c.api, client.Key{Kind: api.Functions, Namespace: "default", Name: "addFive"})
		return err == nil && f.Status.ReadyInstances == 2
	})
	if out := c.ctl("func", "top"); !regexp.MustCompile(`(?m)^addFive +\d+ +[45] +[\d.µm]+s +[\d.µm]+s +\d+ +0 +0 +2/2`).MatchString(out) {
		t.Errorf("top: %s", out)
	}
	if out := c.ctl("why", "func", "addFive"); !strings.Contains(out, "can be called; 2 of its 2 instances take calls") || !strings.Contains(out, "KeyError: 'x'") || !strings.Contains(out, trace) {
		t.Errorf("why: %s", out)
	}
	page := c.ask("GET", "/metrics", "")
	for _, line := range []string{`activator_request_count{namespace_name="default",response_code="500",response_code_class="5xx",service_name="addFive"}`,
		`activator_request_latencies_bucket{namespace_name="default",service_name="addFive",le="+Inf"}`, `autoscaler_actual_pods{namespace_name="default",service_name="addFive"} 2`,
		`autoscaler_panic_mode{namespace_name="default",service_name="addFive"}`, `activator_request_concurrency{namespace_name="default",service_name="addFive"} 0`} {
		if !strings.Contains(page, line) {
			t.Errorf("no %s among the metrics", line)
		}
	}
	out, err := c.command("ctl", "func", "call", "addFive", `{"y": 1}`)
	if err == nil || !strings.Contains(out, "KeyError: 'x'") || !strings.Contains(out, "in main") {
		t.Errorf("ctl shows of a traceback: %q, %v", out, err)
	}
	images := func() int {
		all, err := filepath.Glob(filepath.Join(c.dir, "registry/docker/registry/v2/repositories/functions/default/add-five__25173b/_manifests/revisions/sha256/*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	blobs := func() int {
		all, err := filepath.Glob(filepath.Join(c.dir, "registry/docker/registry/v2/blobs/sha256/*/*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	// Images of older versions go, with what nothing else has of them.
	first := blobs()
	other := filepath.Join(t.TempDir(), "other.py")
	for n := range 3 {
		if err := os.WriteFile(other, fmt.Appendf(nil, "def main(params):\n    return {'x': params['x'] + %d}\n", n+6), 0o600); err != nil {
			t.Fatal(err)
		}
		c.ctl("func", "update", "addFive", "-p", other)
		c.eventually("the new one answers", func() bool {
			_, body, _ := c.post("/addFive", `{"x": 0}`)
			return body == fmt.Sprintf(`{"x": %d}`, n+6)
		})
	}
	c.eventually("one image", func() bool { return images() == 1 && blobs() == first })
	c.ctl("func", "update", "addFive", "-p", "../testdata/functions/addFive.py")
	c.eventually("the first one answers again", func() bool { _, body, _ := c.post("/addFive", `{"x": 0}`); return body == `{"x": 5}` })
	c.eventually("its instances", func() bool { return len(c.instances("add-five--25173b")) == 2 })
	// An instance is a pod, and answers by itself.
	pods := c.instances("add-five--25173b")
	if len(pods) != 2 { // as the command makes them
		t.Errorf("%d instances", len(pods))
	}
	var resp *http.Response
	c.eventually("it listens", func() bool { // a pod runs before its program does
		resp, err = http.Post("http://"+pods[0].Status.PodIP+":8080", "application/json", strings.NewReader(`{"x": 2}`))
		return err == nil
	})
	body, err := io.ReadAll(resp.Body)
	if resp.Body.Close(); err != nil || string(body) != `{"x": 7}` {
		t.Errorf("an instance: %q, %v", body, err)
	}
	for _, seconds := range []string{"nan", "1e10", "-1"} { // would end its watch over time-outs
		q, err := http.NewRequest(http.MethodPost, "http://"+pods[0].Status.PodIP+":8080", strings.NewReader(`{"x": 2}`))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("X-Minik8s-Timeout", seconds)
		if resp, err = http.DefaultClient.Do(q); err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != 400 {
			t.Errorf("a time-out of %s: %d", seconds, resp.StatusCode)
		}
	}
	c.ctl("func", "rm", "-f", "addFive")
	if status, _, _ := c.post("/addFive", `{"x": 1}`); status != 404 {
		t.Errorf("after its removal: %d", status)
	}
	c.eventually("no instances", func() bool { return len(c.instances("add-five--25173b")) == 0 })
	c.eventually("no image", func() bool {
		left, err := filepath.Glob(filepath.Join(c.dir, "registry/docker/registry/v2/repositories/functions/default/*"))
		return err == nil && len(left) == 0
	})
}

// What a function's code may do to itself, and not to others.
func TestFunctionsThatFail(t *testing.T) {
	c := newFunctions(t, 18082)
	fresh := func(s *minik8s.FunctionSpec) { s.Version = minik8s.FunctionV1 }
	short := func(s *minik8s.FunctionSpec) { s.TimeoutSeconds, s.MinInstances = 3, 1 } // its time is not spent on its start
	shortFresh := func(s *minik8s.FunctionSpec) { short(s); fresh(s) }
	for _, x := range []struct {
		name, source string
		change       func(*minik8s.FunctionSpec)
		status       int
		says         string
	}{
		{"syntax", "def main(params:\n", nil, 500, "SyntaxError"},
		{"neither", "x = 1\n", nil, 500, "defines neither main(params) nor run(arg)"},
		{"no-json", "def main(params):\n    return {1, 2}\n", nil, 500, "main returned what is not JSON"},
		{"exits", "import sys\ndef main(params):\n    sys.exit(3)\n", nil, 500, "SystemExit"},
		{"loops", "def main(params):\n    while True: pass\n", short, 504, "within its time"},
		{"loops-fresh", "def main(params):\n    while True: pass\n", shortFresh, 504, "within its time"},
		{"dies", "import os\ndef main(params):\n    os._exit(1)\n", nil, 502, "ended while it had the call"},
		{"dies-fresh", "import os\ndef main(params):\n    os._exit(1)\n", fresh, 500, "ended without a result"},
		{"forks-fresh", "import os, time\ndef main(params):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(600)\n    os._exit(1)\n", shortFresh, 500, "ended without a result"},
		{"prints", "def main(params):\n    while True: print('x' * 10000)\n", short, 504, "within its time"},
		{"eats", "def main(params):\n    return len(bytearray(1 << 30))\n", nil, 502, "ended while it had the call"},
		{"eats-fresh", "def main(params):\n    return len(bytearray(1 << 30))\n", fresh, 0, ""},
	} {
		c.add(x.name, x.source, x.change)
		if x.change != nil && strings.Contains("loops loops-fresh forks-fresh prints", x.name) {
			c.eventually("an instance of "+x.name, func() bool {
				pods := c.instances(x.name)
				return len(pods) == 1 && pods[0].Status.Phase == corev1.PodRunning
			})
		}
		status, body, h := c.post("/"+x.name, `{}`)
		if x.status == 0 { // the kernel takes one of its processes
			x.status, x.says = status, body
		}
		if status != x.status || !strings.Contains(body, x.says) || h.Get("X-Minik8s-Fault") != "function" {
			t.Errorf("%s: %d %q %q", x.name, status, h.Get("X-Minik8s-Fault"), body)
		}
	}
	// An instance that ended comes back.
	c.add("once", "import os\ndef main(params):\n    if params.get('die'): os._exit(1)\n    return os.getpid()\n", nil)
	if status, _, _ := c.post("/once", `{"die": true}`); status != 502 {
		t.Errorf("it answers with %d as it dies", status)
	}
	if status, body, _ := c.post("/once", `{}`); status != 200 {
		t.Errorf("after that: %d %q", status, body)
	}
	// One that is still loading its file ends at once when it has to.
	c.add("slow", "print('it loads', flush=True)\nimport time\ntime.sleep(600)\n", func(s *minik8s.FunctionSpec) { s.TimeoutSeconds, s.MinInstances = 300, 1 })
	c.eventually("it loads", func() bool {
		pods := c.instances("slow")
		if len(pods) == 0 {
			return false
		}
		out, err := c.command("ctl", "logs", pods[0].Name)
		return err == nil && strings.Contains(out, "it loads")
	})
	c.ctl("func", "rm", "-f", "slow")
	c.eventually("no instance of slow", func() bool { return len(c.instances("slow")) == 0 })
	// v1: nothing stays from one call to the next.
	c.add("counts", "n = 0\ndef main(params):\n    global n\n    n += 1\n    return n\n", func(s *minik8s.FunctionSpec) { s.Version = minik8s.FunctionV1 })
	for range 3 {
		if status, body, _ := c.post("/counts", ""); status != 200 || body != "1" {
			t.Errorf("v1: %d %q", status, body)
		}
	}
}

// A burst at a function without instances: nobody is turned away, no instance has more calls than it may, and they go again.
func TestFunctionsFollowTheLoad(t *testing.T) {
	c := newFunctions(t, 18083)
	c.add("sleeps", "import time, threading\nn = 0\nlock = threading.Lock()\ndef main(params):\n    global n\n    with lock:\n        n += 1\n        now = n\n    time.sleep(0.1)\n    with lock:\n        n -= 1\n    return now\n",
		func(s *minik8s.FunctionSpec) {
			s.Concurrency, s.IdleSeconds, s.MaxInstances = 4, 2, 5
		})
	if n := len(c.instances("sleeps")); n != 0 {
		t.Fatalf("%d instances before any call", n)
	}
	var wg sync.WaitGroup
	var wrong atomic.Int64
	for range 60 {
		wg.Go(func() {
			resp, err := http.Post("http://"+c.address+"/sleeps", "", nil)
			if err != nil {
				wrong.Add(1)
				return
			}
			defer resp.Body.Close() //nolint:errcheck // it was only read
			var at int
			if json.NewDecoder(resp.Body).Decode(&at) != nil || resp.StatusCode != 200 || at > 4 {
				wrong.Add(1)
			}
		})
	}
	wg.Wait()
	if n := wrong.Load(); n > 0 {
		t.Errorf("%d of 60 calls were turned away, or were too many at a time", n)
	}
	if n := len(c.instances("sleeps")); n < 2 || n > 5 {
		t.Errorf("%d instances for the burst", n)
	}
	c.eventually("none when nobody calls", func() bool { return len(c.instances("sleeps")) == 0 })
	if status, body, h := c.post("/sleeps", ""); status != 200 || h.Get("X-Minik8s-Cold") != "true" {
		t.Errorf("from none: %d %q", status, body)
	}
}

// The second seed system's functions and routes: branches, and results that are asked for later.
func TestFunctionChains(t *testing.T) {
	c := newFunctions(t, 18085)
	raw, err := remote.New(remote.Config{Socket: filepath.Join(c.dir, "api.sock")})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, body string) (int, string) {
		t.Helper()
		resp, err := raw.Do(context.Background(), method, path, nil, "application/json", bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // it was only read
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, strings.TrimSpace(string(text))
	}
	upload := func(method, path, name, left, right string) {
		t.Helper()
		source, err := os.ReadFile("../testdata/functions/" + name + ".py")
		if err != nil {
			t.Fatal(err)
		}
		doc, err := json.Marshal(map[string]any{"apiVersion": "v2", "kind": "Func", "metadata": map[string]any{"name": name, "namespace": "default"},
			"spec": map[string]any{"name": name, "preRun": base64.StdEncoding.EncodeToString([]byte("true\n")), "function": base64.StdEncoding.EncodeToString(source), "left": left, "right": right}})
		if err != nil {
			t.Fatal(err)
		}
		if status, text := ask(method, path, string(doc)); status >= 300 {
			t.Fatalf("%s: %d %s", name, status, text)
		}
	}
	upload("POST", "/api/funcs/template", "is_hello", "append_world", "append_world")
	upload("POST", "/api/funcs/template", "append_world", "RETURN", "RETURN")
	upload("POST", "/api/funcs/template", "append_branch", "RETURN", "RETURN")
	for arg, want := range map[string]string{"hi": "hi world", "hello": "hello world"} {
		if status, got := ask("POST", "/api/funcs/is_hello", arg); status != 200 || got != want {
			t.Errorf("%s: %d %q", arg, status, got)
		}
	}
	upload("PUT", "/api/funcs/template/is_hello", "is_hello", "append_world", "append_branch")
	c.eventually("the other branch", func() bool { _, got := ask("POST", "/api/funcs/is_hello", "hi"); return got == "hi branch" })
	if _, got := ask("POST", "/api/funcs/is_hello", "hello"); got != "hello world" {
		t.Errorf("hello: %q", got)
	}
	if out := c.ctl("get", "func"); !strings.Contains(out, "is_hello") || !strings.Contains(out, "append_branch") {
		t.Errorf("%s", out)
	}

	// A call that takes longer than its caller waits.
	c.add("slow", "import time\ndef main(params):\n    time.sleep(params['s'])\n    return 'done'\n", nil)
	id := c.ctl("func", "call", "slow", `{"s": 1}`, "--async")
	id = strings.Trim(strings.TrimPrefix(id, `{"id":`), `"}`)
	if out := c.ctl("func", "result", id, "--wait"); out != `"done"` {
		t.Errorf("the result of %s: %q", id, out)
	}
	if status, got := ask("GET", "/api/funcs/"+id, ""); status != 200 || got != `"done"` {
		t.Errorf("the same by the route: %d %q", status, got)
	}
	// A chain that never ends.
	c.add("round", "def run(arg):\n    return arg\n", func(s *minik8s.FunctionSpec) { s.Right = "round" })
	if status, got, _ := c.post("/round", "x"); status != http.StatusLoopDetected || !strings.Contains(got, "does not end") {
		t.Errorf("a circle: %d %q", status, got)
	}

	// Accepted calls are not lost with the daemon, and one that is not to be made twice is not.
	c.add("once", "import time\ndef run(arg):\n    time.sleep(2)\n    return 'done'\n", func(s *minik8s.FunctionSpec) { s.Retry = minik8s.RetryNever })
	if _, got := ask("POST", "/apis/minik8s.io/v1/namespaces/default/functions/once/call?id=only", "x"); !strings.Contains(got, "only") {
		t.Fatal(got)
	}
	var ids []string
	for range 5 {
		_, got := ask("POST", "/apis/minik8s.io/v1/namespaces/default/functions/slow/call?wait=0s&text", `{"s": 0.5}`)
		ids = append(ids, got)
	}
	c.kill()
	c.api = c.up()
	for _, id := range ids {
		if out := c.ctl("func", "result", id, "--wait"); out != `"done"` {
			t.Errorf("after the daemon was killed %s has %q", id, out)
		}
	}
	if out, err := c.command("ctl", "func", "result", "only", "--wait"); err == nil || !strings.Contains(out, "not to be called again") {
		t.Errorf("after the daemon was killed the call that is not to be made twice has %q, %v", out, err)
	}
}

// Any image that answers HTTP is a function.
func TestFunctionOfAnImage(t *testing.T) {
	c := newFunctions(t, 18086)
	c.add("hello", "", func(s *minik8s.FunctionSpec) { s.Image, s.Port = "minik8s/hello", 80 })
	if status, body, h := c.post("/hello", "you"); status != 200 || body != "you" || h.Get("X-Minik8s-Function") != "hello" {
		t.Errorf("%d %q", status, body)
	}
}
