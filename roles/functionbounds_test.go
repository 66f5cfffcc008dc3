package roles_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
)

// Whoever reaches the port for calls can neither fill the store nor keep others from calling; and cannot take the names of others' calls.
func TestFunctionCallsAreBounded(t *testing.T) {
	c := newFunctions(t, 18092)
	ctx := t.Context()
	c.add("sink", "def run(arg):\n    return ''\n", nil)
	c.add("other", "def run(arg):\n    return arg\n", nil)

	// More slow bodies than calls may be under way.
	var slow []net.Conn
	for range 4200 {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			t.Fatal(err)
		}
		slow = append(slow, conn)
		if _, err := conn.Write([]byte("POST /sink HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nsome")); err != nil {
			t.Fatal(err)
		}
	}
	c.eventually("all of it is read", func() bool {
		table, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if strings.HasSuffix(f[1], fmt.Sprintf(":%04X", 18092)) && f[3] == "01" && strings.HasSuffix(f[4], ":00000000") { // established, and nothing waits
				read++
			}
		}
		return read >= len(slow)
	})
	if status, body, _ := c.post("/other", "hello"); status != 200 || body != "hello" {
		t.Errorf("beside slow bodies: %d %q", status, body)
	}
	if status, body, _ := c.post("/sink", "hello"); status != 200 {
		t.Errorf("the function with the slow bodies: %d %q", status, body)
	}
	for _, conn := range slow {
		conn.Close() //nolint:errcheck // it has been of use
	}

	// Calls that are kept.
	later := func(name, body string) *http.Response {
		t.Helper()
		q, err := http.NewRequest(http.MethodPost, "http://"+c.address+"/"+name, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Prefer", "respond-async")
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close() //nolint:errcheck // its head counts
		return resp
	}
	large, n := strings.Repeat("x", 700<<10), 0
	var resp *http.Response
	for resp = later("sink", large); resp.StatusCode == http.StatusAccepted && n < 400; resp = later("sink", large) {
		n++
	}
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || n < 150 {
		t.Errorf("after %d kept calls of 700 KiB: %s, again after %q", n, resp.Status, resp.Header.Get("Retry-After"))
	}
	if resp := later("other", large); resp.StatusCode != http.StatusAccepted {
		t.Errorf("another function's call: %s", resp.Status)
	}
	if status, _, _ := c.post("/sink", large); status != 200 {
		t.Errorf("a call that somebody waits for: %d", status)
	}
	if resp := later("other", strings.Repeat("x", 2<<20)); resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("more than can be kept: %s", resp.Status)
	}
	if status, body, _ := c.post("/other?wait=1ms", strings.Repeat("x", 2<<20)); status != 200 || len(body) != 2<<20 {
		t.Errorf("more than can be kept, and somebody waits a little: %d, %d bytes", status, len(body))
	}

	// Names, and what goes on as a header.
	for _, id := range []string{"trigger.other.x-0123456789abcdef", "UPPER", "-"} {
		if status, body, h := c.post("/other?id="+id, "x"); status != 400 || !strings.Contains(body, "id: ") || h.Get("X-Minik8s-Fault") != "caller" {
			t.Errorf("the id %s: %d %q", id, status, body)
		}
	}
	call := func(name, kind string) *minik8s.FunctionCall {
		return &minik8s.FunctionCall{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: minik8s.FunctionCallSpec{Function: "other", Body: []byte("x"), ContentType: kind}}
	}
	if _, err := c.api.Create(ctx, call("odd", "text/plain\x01"), client.WriteOptions{}); err == nil || !strings.Contains(err.Error(), "spec.contentType") {
		t.Errorf("a control character in the type: %v", err)
	}
	forged := call("forged", "")
	forged.Status = minik8s.FunctionCallStatus{State: minik8s.CallSucceeded, Result: []byte("forged")}
	if _, err := c.api.Create(ctx, forged, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	result := func(name string) string {
		x, err := client.Get[*minik8s.FunctionCall](ctx, c.api, client.Key{Kind: api.FunctionCalls, Namespace: "default", Name: name})
		if err != nil {
			return err.Error()
		}
		return x.Status.State + " " + string(x.Status.Result)
	}
	c.eventually("its own result", func() bool { return result("forged") == "Succeeded x" })

	// A call that is accepted is written twice: as it is accepted, and with its result. One of its name that is made anew is another call.
	w, err := c.api.Watch(ctx, api.FunctionCalls, client.WatchOptions{Namespace: "default", ResourceVersion: c.revision()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	c.post("/other?id=mine", "one")
	var seen []string
	for e := range w.Events() {
		x, ok := e.Object.(*minik8s.FunctionCall)
		if !ok || x.Name != "mine" {
			continue
		}
		if seen = append(seen, fmt.Sprint(e.Type, " ", x.Status.State)); x.Status.Ended() {
			break
		}
	}
	if got := strings.Join(seen, ", "); got != "ADDED Running, MODIFIED Succeeded" {
		t.Errorf("%s", got)
	}
	c.add("slow", "import time\ndef run(arg):\n    time.sleep(float(arg))\n    return arg\n", nil)
	c.post("/slow?id=again", "5")
	if _, err := c.api.Delete(ctx, client.Key{Kind: api.FunctionCalls, Namespace: "default", Name: "again"}, nil); err != nil {
		t.Fatal(err)
	}
	anew := call("again", "")
	anew.Spec.Function, anew.Spec.Body = "slow", []byte("0.01")
	if _, err := c.api.Create(ctx, anew, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.eventually("the result of the new one", func() bool { return result("again") == "Succeeded 0.01" })
}

// revision is the API's now.
func (c *caller) revision() string {
	c.t.Helper()
	list, err := c.api.List(c.t.Context(), api.FunctionCalls, client.ListOptions{Namespace: "default", Limit: 1})
	if err != nil {
		c.t.Fatal(err)
	}
	return list.ResourceVersion
}
