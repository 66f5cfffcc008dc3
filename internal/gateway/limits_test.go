package gateway

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEndpointsThatHang: an endpoint that does not begin to answer ends in 504, one that goes on slowly does not.
func TestEndpointsThatHang(t *testing.T) {
	serve(t, "10.9.0.1", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		if r.URL.Path == "/never" {
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, "begin")
		w.(http.Flusher).Flush()
		time.Sleep(600 * time.Millisecond) // longer than an endpoint has for its head
		fmt.Fprint(w, " and end")
	})
	b := newBed(t, func(c *Config) { c.answerTime = 300 * time.Millisecond }, route("a", "/"))
	b.endpoints("10.9.0.1")
	c := browser(t, "10.8.0.1")
	for name, body := range map[string]io.Reader{"plain": nil, "by net/http": io.MultiReader(strings.NewReader("x"))} {
		answer, text := do(t, c, "POST", "http://a/never", body)
		if answer.StatusCode != 504 || !strings.Contains(text, "has not begun to answer in time") {
			t.Errorf("%s: %s: %s", name, answer.Status, text)
		}
	}
	for _, body := range []io.Reader{nil, io.MultiReader(strings.NewReader("x"))} {
		for range 2 { // the second finds the first one's connection
			if answer, text := do(t, c, "POST", "http://a/slow", body); text != "begin and end" {
				t.Errorf("%s: %q", answer.Status, text)
			}
		}
	}
}

// TestStalledClients: one that takes nothing of its answer is cut off, whoever moves the body.
func TestStalledClients(t *testing.T) {
	cut := make(chan error, 1)
	serve(t, "10.9.0.1", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", fmt.Sprint(1<<40))
		}
		for piece := make([]byte, 64<<10); ; {
			if _, err := w.Write(piece); err != nil {
				cut <- err
				return
			}
		}
	})
	b := newBed(t, func(c *Config) { c.stallTime = 500 * time.Millisecond }, route("a", "/"))
	b.endpoints("10.9.0.1")
	for _, request := range []string{
		"GET /chunks HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /length HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /chunks HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", // by net/http
	} {
		c := dialGateway(t, "10.8.0.1:80")
		fmt.Fprint(c, request)
		select {
		case <-cut:
		case <-time.After(20 * time.Second):
			t.Fatalf("%q: the endpoint still writes, or waits to", request)
		}
	}
}

// TestGreedyClient: one that opens all the connections it can get leaves some for others, and gets them back.
func TestGreedyClient(t *testing.T) {
	serve(t, "10.9.0.1", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "here") })
	b := newBed(t, nil, route("a", "/"))
	b.endpoints("10.9.0.1")
	var conns []net.Conn
	for range maxConns/3 + 100 {
		c, err := net.Dial("tcp", "10.8.0.1:80")
		if errors.Is(err, syscall.ECONNRESET) { // refused already
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	b.eventually("the greedy client has not the third that it gets", func() bool { return b.g.doors.places.Taken() == maxConns/3 })
	answer := func(from string) (string, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.Dial("tcp", "10.8.0.1:80")
		if err != nil {
			return "", err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		text, err := io.ReadAll(c)
		return string(text), err
	}
	if text, err := answer("10.8.0.77"); !strings.HasSuffix(text, "here") {
		t.Errorf("another client: %q, %v", text, err)
	}
	if text, _ := answer("10.8.0.1"); text != "" { // whether it sees a reset or an end depends on when it looks
		t.Errorf("the greedy one gets more: %q", text)
	}
	for _, c := range conns {
		c.Close()
	}
	b.eventually("places are lost", func() bool { return b.g.doors.places.Taken() == 0 })
	if text, err := answer("10.8.0.1"); !strings.HasSuffix(text, "here") {
		t.Errorf("after they have been closed: %q, %v", text, err)
	}
}

// TestCircles: a request that comes back again and again ends.
func TestCircles(t *testing.T) {
	var hops []string
	var to *http.Client
	serve(t, "10.9.0.1", func(w http.ResponseWriter, r *http.Request) { // as a gateway on another node, which leads back
		hops = append(hops, r.Header.Get("Cdn-Loop"))
		answer, text := do(t, to, "GET", "http://a/", nil, "Cdn-Loop", r.Header.Get("Cdn-Loop"))
		w.WriteHeader(answer.StatusCode)
		fmt.Fprint(w, text)
	})
	b := newBed(t, nil, route("a", "/"))
	b.endpoints("10.9.0.1")
	to = browser(t, "10.8.0.1")
	answer, text := do(t, to, "GET", "http://a/", nil, "Cdn-Loop", "other; x=1")
	if answer.StatusCode != http.StatusLoopDetected || len(hops) != maxHops || hops[1] != "other; x=1, minik8s, minik8s" {
		t.Errorf("%s after %q: %s", answer.Status, hops, text)
	}
}
