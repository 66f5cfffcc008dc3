package instance

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// served runs the program with a function, and returns its address and what it has written so far.
func served(t *testing.T, source string, env ...string) (address string, log func() string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "program"), fs.FS(Files)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "main.py")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	l.Close() //nolint:errcheck // its port is free again
	out := filepath.Join(dir, "log")
	w, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-B", "-u", filepath.Join(dir, "program", Main))
	cmd.Stdout, cmd.Stderr = w, w
	cmd.Env = append(append(os.Environ(), "PORT="+port, "MINIK8S_MAIN="+file), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // it was killed
		w.Close()          //nolint:errcheck // a test's
	})
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close() //nolint:errcheck // nothing was sent
			break
		} else if time.Since(began) > 20*time.Second {
			t.Fatal(err)
		}
	}
	return address, func() string {
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// says sends bytes, ends its side, and returns the status, the outcome and the body of the answer; 0: there is none.
func says(t *testing.T, address, request string) (int, string, string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()                                 //nolint:errcheck // the test has what it wants
	c.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // it never fails
	go func() {
		io.WriteString(c, request)    //nolint:errcheck // it may answer before all is sent
		c.(*net.TCPConn).CloseWrite() //nolint:errcheck // as above
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, "", ""
	}
	body, _ := io.ReadAll(resp.Body) //nolint:errcheck // what came counts
	return resp.StatusCode, resp.Header.Get("X-Minik8s-Outcome"), string(body)
}

func post(body string, headers ...string) string {
	return fmt.Sprintf("POST / HTTP/1.1\r\nContent-Length: %d\r\n%s\r\n%s", len(body), strings.Join(append(headers, ""), "\r\n"), body)
}

// What is no call is none, and is told to whoever's mistake it is; the instance goes on.
func TestRequests(t *testing.T) {
	address, log := served(t, `
import json, sys
def main(params):
    print("called", flush=True)
    if params == "nan": return float("nan")
    if params == "inf": return [float("inf")]
    if params == "deep":
        x = []
        for _ in range(100000): x = [x]
        return x
    if params == "surrogate": raise ValueError("\ud800")
    return params
`)
	type answer struct {
		status        int
		outcome, says string
	}
	for what, x := range map[string]struct {
		request string
		answer
	}{
		"a part of a body":        {"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n[1]", answer{0, "", ""}},
		"a part of a chunk":       {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n[1]", answer{0, "", ""}},
		"no last chunk":           {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n[1]\r\n", answer{0, "", ""}},
		"a chunk that is longer":  {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[1]\r\n0\r\n\r\n", answer{400, "caller", "longer than it says"}},
		"a length that is none":   {"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", answer{400, "caller", "no number"}},
		"a time-out that is none": {post("1", "X-Minik8s-Timeout: soon"), answer{400, "caller", "X-Minik8s-Timeout"}},
		"headers without end":     {"POST / HTTP/1.1\r\n" + strings.Repeat("A: "+strings.Repeat("x", 1000)+"\r\n", 100) + "\r\n", answer{431, "caller", "headers"}},
		"a header without end":    {"POST / HTTP/1.1\r\nA: " + strings.Repeat("x", 100000) + "\r\n\r\n", answer{431, "caller", "headers"}},
		"NaN":                     {post("NaN"), answer{400, "caller", "NaN is no number in JSON"}},
		"nested too deep":         {post(strings.Repeat("[", 200000)), answer{400, "caller", "not JSON"}},
		"NaN returned":            {post(`"nan"`), answer{500, "function", "main returned what is not JSON"}},
		"Infinity returned":       {post(`"inf"`), answer{500, "function", "main returned what is not JSON"}},
		"too deep, returned":      {post(`"deep"`), answer{500, "function", "main returned what is not JSON"}},
		"a traceback of no text":  {post(`"surrogate"`), answer{500, "function", `\ud800`}},
		"half a character":        {post(`"\ud800"`), answer{200, "ok", `"\ud800"`}},
		"chunks":                  {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[1\r\n1\r\n]\r\n0\r\nT: x\r\n\r\n", answer{200, "ok", "[1]"}},
	} {
		before := strings.Count(log(), "called")
		status, outcome, text := says(t, address, x.request)
		if status != x.status || outcome != x.outcome || !strings.Contains(text, x.says) {
			t.Errorf("%s: %d %q %.200q", what, status, outcome, text)
		}
		if ran := strings.Count(log(), "called") > before; ran != (x.outcome == "function" || x.outcome == "ok") {
			t.Errorf("%s: called: %v", what, ran)
		}
	}
}

// A function of text that returns half a character is told so, whether it has a process of its own or not.
func TestText(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		address, _ := served(t, "def run(arg):\n    return arg or chr(0xd800)\n", "MINIK8S_VERSION="+version)
		if status, outcome, text := says(t, address, post("")); status != 500 || outcome != "function" || !strings.Contains(text, "run returned what is not text") {
			t.Errorf("%s: %d %q %q", version, status, outcome, text)
		}
		if status, _, text := says(t, address, post("é")); status != 200 || text != "é" {
			t.Errorf("%s: %d %q", version, status, text)
		}
	}
}

// The function can ask for the id of the call that runs, which is the same when the call is made again.
func TestCallID(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		address, _ := served(t, "import minik8s\ndef run(arg):\n    return str(minik8s.call_id()) + ' ' + str(minik8s.trace_id())\n", "MINIK8S_VERSION="+version)
		const trace = "0af7651916cd43dd8448eb211c80319c"
		if _, _, text := says(t, address, post("", "X-Minik8s-Call: call-1", "Traceparent: 00-"+trace+"-b7ad6b7169203331-01")); text != "call-1 "+trace {
			t.Errorf("%s: %q", version, text)
		}
		if _, _, text := says(t, address, post("")); text != "None None" {
			t.Errorf("%s, of a call without one: %q", version, text)
		}
	}
}

// A call in a process of its own that runs over its time is told from one whose process ends.
func TestLate(t *testing.T) {
	address, _ := served(t, "import os, time\ndef run(arg):\n    if arg: os._exit(3)\n    time.sleep(600)\n", "MINIK8S_VERSION=v1")
	for arg, want := range map[string]int{"": 504, "x": 500} {
		if status, outcome, text := says(t, address, post(arg, "X-Minik8s-Timeout: 0.3")); status != want || outcome != "function" {
			t.Errorf("%q: %d %q %q", arg, status, outcome, text)
		}
	}
}
