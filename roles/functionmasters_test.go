package roles_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/machine"
	"minik8s/internal/store/external/externaltest"
)

// told is how one call went, for its caller.
type told struct {
	arg    string
	at     time.Time // its beginning
	status int
	fault  string
	id     string
	body   string
	err    error
}

// traffic is callers of functions, who note what they are told.
type traffic struct {
	stop chan struct{}
	wg   sync.WaitGroup

	mu    sync.Mutex
	calls map[string][]told // by who calls
	last  int
}

// call calls once.
func (x *traffic) call(who, url, arg string) told {
	c := told{arg: arg, at: time.Now()}
	resp, err := http.Post(url, "", strings.NewReader(arg))
	if err == nil {
		var b []byte
		b, err = io.ReadAll(resp.Body)
		resp.Body.Close() //nolint:errcheck // it was read
		c.status, c.body, c.fault, c.id = resp.StatusCode, string(b), resp.Header.Get("X-Minik8s-Fault"), resp.Header.Get("X-Minik8s-Call")
	}
	c.err = err
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls[who] = append(x.calls[who], c)
	return c
}

// run calls again and again, each time with another argument: when the one before is answered, and, with turns, somebody has given a turn.
func (x *traffic) run(who, url string, turns <-chan struct{}, each func()) {
	x.wg.Go(func() {
		for {
			if turns != nil {
				select {
				case <-turns:
				case <-x.stop:
					return
				}
			}
			select {
			case <-x.stop:
				return
			default:
			}
			c := x.call(who, url, fmt.Sprint(who, "-", x.number()))
			if each != nil {
				each()
			}
			if c.err != nil {
				return // its master is gone
			}
		}
	})
}

// number is another one each time.
func (x *traffic) number() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.last++
	return x.last
}

// of are the calls of somebody.
func (x *traffic) of(who string) []told {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.calls[who])
}

// answered counts the calls of somebody that began after a time and had a status.
func (x *traffic) answered(who string, after time.Time, status int) int {
	n := 0
	for _, c := range x.of(who) {
		if c.status == status && c.at.After(after) {
			n++
		}
	}
	return n
}

// The master that leads is killed in the middle of calls. No accepted call is lost, and none is made twice that is not to be; who asks the other
// master is answered, or is told that it is not known whether his call was made, if that was under way; and calls that come while nobody
// leads wait for whoever leads then.
func TestFunctionCallsOutliveTheirMaster(t *testing.T) {
	needRoot(t)
	base, err := filepath.Abs("../build/functions/python.tar")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(base); err != nil {
		t.Skip("no image with Python: ", err)
	}
	etcd := externaltest.Start(t)
	// The machine of the killed master has the instances, which go on; nobody takes it for lost meanwhile.
	flags := []string{"--etcd-servers=" + etcd.URL, "--etcd-cafile=" + etcd.CAFile, "--etcd-certfile=" + etcd.CertFile, "--etcd-keyfile=" + etcd.KeyFile,
		"--function-base=" + base, "--node-grace-period=2m", "--node-unknown-period=2m"}
	const leading, following = "http://127.0.0.1:18096", "http://127.0.0.1:18097"
	first := newProcess(t, append(slices.Clone(flags), "--node-name=first", "--function-address=127.0.0.1:18096")...)
	c := first.up()
	line, err := first.command("ctl", "token", "create", "--role=master")
	token := regexp.MustCompile(`--token=\S+`).FindString(line)
	if err != nil || token == "" {
		t.Fatal(line, err)
	}
	second := newProcess(t, append(slices.Clone(flags), "--role=master", "--api-port=6444", "--server=https://"+machine.Address+":6443", token, "--node-name=second", "--function-address=127.0.0.1:18097")...)
	other := second.up()
	if got := holder(other); got != "first" {
		t.Fatalf("%s leads", got)
	}
	add := func(name, source string, change func(*minik8s.FunctionSpec)) {
		t.Helper()
		f := &minik8s.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: minik8s.FunctionSpec{Source: source, TimeoutSeconds: 60}}
		change(&f.Spec)
		if _, err := c.Create(context.Background(), f, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		first.eventually("instances of "+name, func() bool {
			f, err := client.Get[*minik8s.Function](t.Context(), other, client.Key{Kind: api.Functions, Namespace: "default", Name: name})
			return err == nil && f.Status.ReadyInstances == f.Spec.MinInstances
		})
	}
	add("works", "import time\ndef run(arg):\n    time.sleep(0.2)\n    return 'did ' + arg\n", func(s *minik8s.FunctionSpec) {
		s.MinInstances, s.MaxInstances, s.Concurrency = 2, 2, 10
	})
	add("once", "import time, json, threading\nseen = {}\nlock = threading.Lock()\ndef run(arg):\n    if arg == '?':\n        return json.dumps(seen)\n    with lock:\n        seen[arg] = seen.get(arg, 0) + 1\n    time.sleep(3)\n    return 'did ' + arg\n",
		func(s *minik8s.FunctionSpec) {
			s.MinInstances, s.MaxInstances, s.Concurrency, s.Retry = 1, 1, 20, minik8s.RetryNever
		})

	x := &traffic{stop: make(chan struct{}), calls: map[string][]told{}}
	turns := make(chan struct{}, 4)
	for range 6 {
		x.run("asks", following+"/works", nil, func() {
			select {
			case turns <- struct{}{}: // so that accepted calls do not come faster than calls are made
			default:
			}
		})
	}
	x.run("asks the leader", leading+"/works", nil, nil)
	for range 2 {
		x.run("leaves", following+"/works?wait=0s", turns, nil)
		x.run("leaves at the leader", leading+"/works?wait=0s", turns, nil)
	}
	first.eventually("calls are under way", func() bool {
		return x.answered("asks", time.Time{}, 200) > 20 && x.answered("leaves", time.Time{}, 202) > 10 && x.answered("leaves at the leader", time.Time{}, 202) > 10
	})
	for n := range 10 {
		if got := x.call("leaves once", following+"/once?wait=0s", fmt.Sprint("once-", n)); got.status != http.StatusAccepted {
			t.Fatalf("%+v", got)
		}
	}
	first.kill()
	dead := time.Now()
	second.eventually("calls are made again", func() bool { return x.answered("asks", dead, 200) > 20 && x.answered("leaves", dead, 202) > 5 })
	close(x.stop)
	x.wg.Wait()
	if got := holder(other); got != "second" {
		t.Errorf("%s leads", got)
	}

	unknown := 0
	for _, c := range x.of("asks") {
		switch {
		case c.err == nil && c.status == 200 && c.body == "did "+c.arg:
		case c.err == nil && c.status == 503 && c.fault == minik8s.FaultPlatform && c.at.Before(dead) && strings.Contains(c.body, "whether the function ran is not known"):
			unknown++
		default:
			t.Errorf("who asked the other master was told %+v", c)
		}
	}
	if unknown > 12 { // each had one under way, and may have sent another one before it was seen that the connection is dead
		t.Errorf("%d callers were told that it is not known whether their call was made, and 6 had one under way", unknown)
	}
	result := func(id string) (status minik8s.FunctionCallStatus) {
		second.eventually("the end of call "+id, func() bool {
			f, err := client.Get[*minik8s.FunctionCall](t.Context(), other, client.Key{Kind: api.FunctionCalls, Namespace: "default", Name: id})
			if err != nil {
				t.Fatalf("the accepted call %s: %v", id, err)
			}
			status = f.Status
			return status.Ended()
		})
		return status
	}
	accepted := 0
	for _, c := range append(x.of("leaves"), x.of("leaves at the leader")...) {
		if c.status != http.StatusAccepted {
			if !strings.HasPrefix(c.arg, "leaves at the leader") { // which is gone
				t.Errorf("who left a call at the other master was told %+v", c)
			}
			continue
		}
		accepted++
		if s := result(c.id); s.State != minik8s.CallSucceeded || string(s.Result) != "did "+c.arg {
			t.Errorf("the accepted call %s ended %s: %q", c.id, s.State, s.Result)
		}
	}
	lost := 0
	for _, c := range x.of("leaves once") {
		switch s := result(c.id); {
		case s.State == minik8s.CallSucceeded && string(s.Result) == "did "+c.arg: // it was made when the master was gone
		case s.State == minik8s.CallFailed && s.Fault == minik8s.FaultPlatform && strings.Contains(string(s.Result), "not to be called again"):
			lost++
		default:
			t.Errorf("the call %s, which is not to be made twice, ended %s: %q", c.id, s.State, s.Result)
		}
	}
	if got := x.call("looks", following+"/once", "?"); got.status != 200 || !strings.Contains(got.body, "once-0") || regexp.MustCompile(`: [^1]`).MatchString(got.body) {
		t.Errorf("how often each was made: %+v", got)
	}
	t.Logf("%d callers answered, %d not sure; %d calls accepted; %d of 10 not made again", len(x.of("asks"))-unknown, unknown, accepted, lost)

	// It is back, and passes calls on to the one that leads now.
	first.up()
	if got := x.call("asks the leader", leading+"/works", "back"); got.status != 200 || got.body != "did back" {
		t.Errorf("when it is back: %+v", got)
	}

	// Another one leads, and the master that led is alive: it finishes what it has begun, and nobody makes that again or says that it is lost.
	for n := range 10 {
		if got := x.call("leaves at the next", following+"/once?wait=0s", fmt.Sprint("next-", n)); got.status != http.StatusAccepted {
			t.Fatalf("%+v", got)
		}
	}
	node, err := client.Get[*corev1.Node](t.Context(), c, client.Key{Kind: api.Nodes, Name: "first"})
	if err != nil {
		t.Fatal(err)
	}
	etcd.Put("/minik8s/minik8s/leader", node.Annotations[api.MachineKeyAnnotation]) // as if it were elected
	first.eventually("calls go to the first", func() bool { return holder(c) == "first" && x.call("looks", leading+"/works", "1").status == 200 })
	for _, told := range x.of("leaves at the next") {
		if s := result(told.id); s.State != minik8s.CallSucceeded || string(s.Result) != "did "+told.arg || s.Master != "" {
			t.Errorf("the call %s of a master that leads no more ended %s: %q", told.id, s.State, s.Result)
		}
	}
	if got := x.call("looks", leading+"/once", "?"); got.status != 200 || !strings.Contains(got.body, "next-0") || regexp.MustCompile(`: [^1]`).MatchString(got.body) {
		t.Errorf("how often each was made: %+v", got)
	}
}
