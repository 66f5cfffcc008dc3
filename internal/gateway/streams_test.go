package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// TestGRPC is what gRPC needs: HTTP/2 without TLS on both sides, messages in both directions at once, trailers.
func TestGRPC(t *testing.T) {
	serve(t, "10.9.0.1", func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("the backend is asked by %s", r.Proto)
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			fmt.Fprintf(w, "echo %s\n", lines.Text())
			w.(http.Flusher).Flush()
		}
		w.Header().Set("Grpc-Status", "0")
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", "fine")
	})
	b := newBed(t, nil, route("grpc", "/", func(r *routesRoute) { r.Strip = false }))
	b.endpoints("10.9.0.1")
	c := browser(t, "10.8.0.1")
	tr := c.Transport.(*http.Transport)
	tr.Protocols = &http.Protocols{}
	tr.Protocols.SetUnencryptedHTTP2(true)
	out, in := io.Pipe()
	r, err := http.NewRequest("POST", "http://grpc/pkg.Service/Method", out)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/grpc+proto")
	r.Header.Set("TE", "trailers")
	go fmt.Fprintln(in, "first")
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for _, word := range []string{"first", "second", "third"} {
		if !lines.Scan() || lines.Text() != "echo "+word {
			t.Fatalf("%q, %v", lines.Text(), lines.Err())
		}
		switch word {
		case "first":
			fmt.Fprintln(in, "second")
		case "second":
			fmt.Fprintln(in, "third")
		}
	}
	in.Close()
	if lines.Scan() || answer.ProtoMajor != 2 || answer.Trailer.Get("Grpc-Status") != "0" || answer.Trailer.Get("Grpc-Message") != "fine" {
		t.Errorf("%s, trailers %v", answer.Proto, answer.Trailer)
	}
}

func TestWebSocket(t *testing.T) {
	serve(t, "10.9.0.1", func(w http.ResponseWriter, r *http.Request) {
		c, err := (&websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer c.Close()
		for {
			kind, p, err := c.ReadMessage()
			if err != nil || c.WriteMessage(kind, append([]byte(r.URL.Path+" "), p...)) != nil {
				return
			}
		}
	})
	b := newBed(t, nil, route("ws", "/chat"))
	b.endpoints("10.9.0.2", "10.9.0.1")
	d := websocket.Dialer{NetDialContext: browser(t, "10.8.0.1").Transport.(*http.Transport).DialContext}
	for range 3 {
		c, _, err := d.DialContext(t.Context(), "ws://ws/chat/room", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"a", strings.Repeat("b", 100000)} {
			_ = c.WriteMessage(websocket.TextMessage, []byte(text))
			if _, got, err := c.ReadMessage(); err != nil || string(got) != "/room "+text {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
		}
		c.Close()
	}
}

// TestNoHTTP2ByUpgrade: an endpoint that switched to HTTP/2 would answer requests that no route has led there.
func TestNoHTTP2ByUpgrade(t *testing.T) {
	serve(t, "10.9.0.1", tell)
	b := newBed(t, nil, route("a", "/"))
	b.endpoints("10.9.0.1")
	answer, text := do(t, browser(t, "10.8.0.1"), "GET", "http://a/", nil, "Upgrade", "h2c", "Connection", "Upgrade, HTTP2-Settings", "HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA")
	if answer.StatusCode != 200 || strings.Contains(text, "Upgrade") || strings.Contains(text, "Http2") {
		t.Errorf("%s\n%s", answer.Status, text)
	}
}

// TestStreaming: each piece of an answer comes at once; a client that goes ends the request at the backend, also before the
// answer has begun.
func TestStreaming(t *testing.T) {
	t.Run("plain", func(t *testing.T) { testStreaming(t, browser(t, "10.8.0.1")) })
	t.Run("HTTP/2", func(t *testing.T) {
		c := browser(t, "10.8.0.1")
		tr := c.Transport.(*http.Transport)
		tr.Protocols = &http.Protocols{}
		tr.Protocols.SetUnencryptedHTTP2(true)
		testStreaming(t, c)
	})
}

func testStreaming(t *testing.T, c *http.Client) {
	ended, more := make(chan string, 1), make(chan struct{})
	serve(t, "10.9.0.1", func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- r.URL.Path }()
		switch r.URL.Path {
		case "/events":
			w.Header().Set("Content-Type", "text/plain") // not only what a proxy knows to be a stream
			for i := range 3 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				w.(http.Flusher).Flush()
				<-more
			}
		case "/old": // ended by the end of the connection
			w.Header().Set("Connection", "close")
			w.Header()["Transfer-Encoding"] = []string{"identity"}
			_, _ = io.WriteString(w, "all of it")
			return
		}
		<-r.Context().Done()
	})
	b := newBed(t, nil, route("sse", "/"))
	b.endpoints("10.9.0.1")
	get := func(ctx context.Context, path string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, "GET", "http://sse"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Do(r)
	}
	ctx, stop := context.WithCancel(t.Context())
	answer, err := get(ctx, "/events")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(answer.Body)
	for i := range 3 {
		line, err := lines.ReadString('\n')
		if _, err2 := lines.ReadString('\n'); err != nil || err2 != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("%q %v", line, err)
		}
		more <- struct{}{}
	}
	stop()
	answer.Body.Close()
	if p := <-ended; p != "/events" {
		t.Errorf("%s has ended", p)
	}
	ctx, stop = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if answer, err := get(ctx, "/silent"); err == nil {
		t.Errorf("an answer: %s", answer.Status)
	}
	if p := <-ended; p != "/silent" {
		t.Errorf("%s has ended", p)
	}
	answer, text := do(t, c, "GET", "http://sse/old", nil)
	if <-ended; text != "all of it" {
		t.Errorf("%s: %q", answer.Status, text)
	}
}

// TestSlowClients: one that does not end its head is cut, and one that reads slowly does not fill the gateway's memory.
func TestSlowClients(t *testing.T) {
	written := make(chan int, 1)
	serve(t, "10.9.0.1", func(w http.ResponseWriter, r *http.Request) {
		total, piece := 0, make([]byte, 64<<10)
		for range 1 << 14 { // 1 GiB
			n, err := w.Write(piece)
			if total += n; err != nil {
				break
			}
		}
		written <- total
	})
	b := newBed(t, func(c *Config) { c.headTime = 100 * time.Millisecond }, route("a", "/"))
	b.endpoints("10.9.0.1")
	for _, start := range []string{"", "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n"} {
		c := dialGateway(t, "10.8.0.1:80")
		fmt.Fprint(c, start)
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.ReadAll(c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%q: %v", start, err)
		}
	}
	c := dialGateway(t, "10.8.0.1:80")
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := io.ReadFull(c, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if n := <-written; n > 64<<20 {
		t.Errorf("%d MiB went into nobody's hands", n>>20)
	}
}

func dialGateway(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
