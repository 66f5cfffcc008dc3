package gateway

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// raw runs a backend at 10.9.0.1:8080 that answers each request with exactly the text that its path names. It counts
// connections. After an END it ends the connection. What follows LATE is sent when tell says so; it is told of both.
func raw(t *testing.T, answers map[string]string, tell chan struct{}) (connections func() int) {
	t.Helper()
	l, err := net.Listen("tcp4", "10.9.0.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []net.Conn
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			all = append(all, c)
			mu.Unlock()
			running.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					text, end := strings.CutSuffix(answers[r.URL.Path], "END")
					text, late, _ := strings.Cut(text, "LATE")
					_, _ = io.WriteString(c, text)
					if late != "" {
						<-tell // the client has the answer
						_, _ = io.WriteString(c, late)
						tell <- struct{}{}
					}
					if end || text == "" {
						if c.Close(); tell != nil {
							tell <- struct{}{}
						}
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range all {
			c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(all)
	}
}

// talk sends text and returns n answers, each with its body, read by net/http. A method HEAD is told by the text.
func talk(t *testing.T, text string, n int) (out []string, closed bool) {
	t.Helper()
	c := dialGateway(t, "10.8.0.1:80")
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	method, _, _ := strings.Cut(text, " ")
	for range n {
		r, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			out = append(out, "error")
			return out, true
		}
		body, err := io.ReadAll(r.Body)
		line := fmt.Sprintf("%s %q %d", r.Status, body, r.ContentLength)
		for name, v := range r.Trailer {
			line += fmt.Sprintf(" %s=%s", name, v[0])
		}
		if err != nil {
			line += " cut"
		}
		out = append(out, line)
		if err != nil || r.Close {
			closed = true
		}
	}
	return out, closed
}

func TestPlainAnswers(t *testing.T) {
	big := strings.Repeat("x", 100000)
	header := strings.Repeat("y", 20000)
	answers := map[string]string{
		"/length":    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"/big":       "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + big,
		"/chunked":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nX-T: 1\r\nContent-Length: 9\r\n\r\n",
		"/until":     "HTTP/1.1 200 OK\r\n\r\nuntil the endEND",
		"/old":       "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\noldEND",
		"/204":       "HTTP/1.1 204 No Content\r\n\r\n",
		"/304":       "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nEtag: x\r\n\r\n",
		"/hints":     "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"/long-head": "HTTP/1.1 200 OK\r\nX: " + header + "\r\nContent-Length: 2\r\n\r\nok",
		"/more":      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad",
		"/short":     "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhelloEND",
		"/cut":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nheEND",
		"/bad-chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhellox0\r\n\r\n",
		"/bad":       "hello, this is no HTTP\r\n\r\n",
		"/half":      "HTTP/1.1 200 OK\r\nContent-END",
		"/switch":    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
		"/two":       "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"/huge-head": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat(header, 20) + "\r\n\r\nEND",
	}
	const malformed = "502 Bad Gateway \"502 Bad Gateway\\nThe endpoint's answer is malformed.\\n\" 52"
	raw(t, answers, nil)
	b := newBed(t, nil, route("a", "/"))
	for _, c := range []struct {
		method, path, want string
		cut                bool
	}{
		{"GET", "/length", `200 OK "hello" 5`, false},
		{"GET", "/big", `200 OK "` + big + `" 100000`, false},
		{"GET", "/chunked", `200 OK "hello!" -1 X-T=1`, false},
		{"GET", "/until", `200 OK "until the end" -1`, false},
		{"GET", "/old", `200 OK "old" 3`, false},
		{"GET", "/204", `204 No Content "" 0`, false},
		{"GET", "/304", `304 Not Modified "" 0`, false},
		{"GET", "/hints", `200 OK "ok" 2`, false},
		{"GET", "/long-head", `200 OK "ok" 2`, false},
		{"GET", "/more", `200 OK "ok" 2`, false},
		{"GET", "/short", `200 OK "hello" 10 cut`, true},
		{"GET", "/cut", `200 OK "he" -1 cut`, true},
		{"GET", "/bad-chunk", malformed, false},
		{"GET", "/bad", malformed, false},
		{"GET", "/half", "502 Bad Gateway \"502 Bad Gateway\\nThe endpoint has broken off its answer.\\n\" 56", false},
		{"GET", "/switch", malformed, false},
		{"GET", "/two", malformed, false},
		{"GET", "/huge-head", malformed, false},
	} {
		b.endpoints("10.9.0.1")
		next := "/length"
		// The request after it on the same connection shows that the gateway has kept its place.
		text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: a\r\n\r\nGET %s HTTP/1.1\r\nHost: a\r\n\r\n", c.method, c.path, next)
		got, closed := talk(t, text, 2)
		if strings.HasPrefix(got[0], "304") {
			got[0] = strings.Replace(got[0], `"" 5`, `"" 0`, 1)
		}
		if got[0] != c.want {
			t.Errorf("%s: %.200s, want %.200s", c.path, got[0], c.want)
		}
		if c.cut != closed || !c.cut && got[1] != `200 OK "hello" 5` {
			t.Errorf("after %s: %.200v, closed: %v", c.path, got[1:], closed)
		}
	}
	// The backend of this test answers HEAD with a body: what the gateway says ends with the head.
	got, _ := talk(t, "HEAD /length HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 1)
	if got[0] != `200 OK "" 5` {
		t.Errorf("HEAD: %v", got)
	}
}

// TestRequestsThatMayBeReadInTwoWays: what one server takes for one request must not be two for another.
func TestRequestsThatMayBeReadInTwoWays(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	serve(t, "10.9.0.1", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		seen = append(seen, fmt.Sprintf("%s %s %q", r.Method, r.URL.Path, body))
		mu.Unlock()
	})
	b := newBed(t, nil, route("a", "/"))
	b.endpoints("10.9.0.1")
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, head := range []string{
		"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
		"Transfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n",
		"Transfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\n",
		"Content-Length: 0\r\nContent-Length: 40\r\n\r\n",
		"Content-Length: +0\r\n\r\n",
		"Content-Length: 0\r\nX: a\r\rY: b\r\n\r\n",
		"X: a\x00b\r\n\r\n",
	} {
		mu.Lock()
		seen = nil
		mu.Unlock()
		got, _ := talk(t, "POST /x HTTP/1.1\r\nHost: a\r\n"+head+smuggled, 1)
		if !strings.HasPrefix(got[0], "4") && !strings.HasPrefix(got[0], "501") {
			t.Errorf("%q: %v", head, got)
		}
		mu.Lock()
		if len(seen) > 0 {
			t.Errorf("%q: the backend has seen %q", head, seen)
		}
		mu.Unlock()
	}
}

// TestBrokenBodies: a client whose body is malformed does not make endpoints look bad.
func TestBrokenBodies(t *testing.T) {
	var mu sync.Mutex
	count := map[string]int{}
	for _, a := range []string{"10.9.0.1", "10.9.0.2"} {
		serve(t, a, func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err == nil {
				mu.Lock()
				count[a]++
				mu.Unlock()
			}
		})
	}
	b := newBed(t, nil, route("a", "/"))
	b.endpoints("10.9.0.1", "10.9.0.2")
	for range 3 {
		if got, _ := talk(t, "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcdefgh\r\nzz", 1); !strings.HasPrefix(got[0], "400") {
			t.Error(got)
		}
	}
	for range 10 {
		talk(t, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n", 1)
	}
	mu.Lock()
	defer mu.Unlock()
	if count["10.9.0.1"] != 5 || count["10.9.0.2"] != 5 {
		t.Errorf("ten requests went %v", count)
	}
}

// TestPlainRequests are requests that are plain, or nearly, in pieces and several at once.
func TestPlainRequests(t *testing.T) {
	serve(t, "10.9.0.1", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %d", r.Method, r.URL.Path, len(body))
	})
	b := newBed(t, nil, route("a", "/"))
	b.endpoints("10.9.0.1")
	const get = "GET /g HTTP/1.1\r\nHost: a\r\n\r\n"
	post := func(n int) string {
		return fmt.Sprintf("POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", n, strings.Repeat("x", n))
	}
	const chunked = "PUT /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
	for _, c := range []struct {
		text string
		want []string
	}{
		{get, []string{"GET /g 0"}},
		{get + get + post(10) + get, []string{"GET /g 0", "GET /g 0", "POST /p 10", "GET /g 0"}},
		{post(7000) + post(8000) + post(9000) + post(100000) + get, []string{"POST /p 7000", "POST /p 8000", "POST /p 9000", "POST /p 100000", "GET /g 0"}},
		{get + chunked + get + post(1), []string{"GET /g 0", "PUT /c 3", "GET /g 0", "POST /p 1"}},
		{get + "GET /g HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 20000) + "\r\n\r\n" + get, []string{"GET /g 0", "GET /g 0", "GET /g 0"}},
		{"GET /%67 HTTP/1.1\r\nHost: a\r\n\r\n" + get, []string{"GET /g 0", "GET /g 0"}},
		{"GET http://a/g HTTP/1.1\r\nHost: b\r\n\r\n", []string{"GET /g 0"}},
	} {
		for _, piece := range []int{1 << 20, 1000, 7} {
			if len(c.text)/piece > 3000 {
				continue
			}
			conn := dialGateway(t, "10.8.0.1:80")
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			go func() {
				for text := c.text; text != ""; {
					n := min(piece, len(text))
					if _, err := io.WriteString(conn, text[:n]); err != nil {
						return
					}
					if text = text[n:]; piece < 100 {
						runtime.Gosched()
					}
				}
			}()
			in := bufio.NewReader(conn)
			for i, want := range c.want {
				r, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatalf("%.100q in pieces of %d, answer %d: %v", c.text, piece, i, err)
				}
				if body, err := io.ReadAll(r.Body); err != nil || string(body) != want {
					t.Errorf("%.100q in pieces of %d, answer %d: %s %v, want %s", c.text, piece, i, body, err, want)
				}
			}
			conn.Close()
		}
	}
	conn := dialGateway(t, "10.8.0.1:80") // Expect: the body is sent only when it is asked for
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(conn, "POST /e HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q %v", line, err)
	}
	_, _ = in.ReadString('\n')
	fmt.Fprint(conn, "abc")
	r, err := http.ReadResponse(in, nil)
	for err == nil && r.StatusCode == http.StatusContinue { // the endpoint's own, after the gateway's
		r, err = http.ReadResponse(in, nil)
	}
	if err != nil || r.StatusCode != 200 {
		t.Error(r, err)
	}
}

// TestReuse: connections to endpoints are used again, and those that the endpoint has ended cost no request.
func TestReuse(t *testing.T) {
	ok := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	ended := make(chan struct{})
	connections := raw(t, map[string]string{"/keep": ok, "/end": ok + "END"}, ended)
	b := newBed(t, nil, route("a", "/"))
	b.endpoints("10.9.0.1")
	for range 20 {
		if got, _ := talk(t, "GET /keep HTTP/1.1\r\nHost: a\r\n\r\n", 1); got[0] != `200 OK "ok" 2` {
			t.Fatal(got)
		}
	}
	if n := connections(); n > 2 {
		t.Errorf("%d connections for 20 requests", n)
	}
	for range 20 {
		for _, method := range []string{"POST", "GET"} {
			if got, _ := talk(t, method+" /end HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", 1); got[0] != `200 OK "ok" 2` {
				t.Fatal(method, got)
			}
			<-ended
		}
	}
}

// TestUnasked: what an endpoint sends without being asked is not taken for the next answer.
func TestUnasked(t *testing.T) {
	ok := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	late := make(chan struct{})
	raw(t, map[string]string{"/keep": ok, "/late": ok + "LATE" + "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"}, late)
	b := newBed(t, nil, route("a", "/"))
	b.endpoints("10.9.0.1")
	for range 3 {
		for _, path := range []string{"/late", "/keep"} {
			if got, _ := talk(t, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n", 1); got[0] != `200 OK "ok" 2` {
				t.Fatal(path, got)
			}
			if path == "/late" {
				late <- struct{}{}
				<-late
			}
		}
	}
}

// TestClientsThatGo: a request whose client has gone is not sent to another endpoint.
func TestClientsThatGo(t *testing.T) {
	asked, ended := make(chan struct{}, 10), make(chan struct{}, 10)
	for _, a := range []string{"10.9.0.1", "10.9.0.2"} {
		serve(t, a, func(w http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			<-r.Context().Done()
			ended <- struct{}{}
		})
	}
	b := newBed(t, nil, route("a", "/"))
	b.endpoints("10.9.0.1", "10.9.0.2")
	conn := dialGateway(t, "10.8.0.1:80")
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-asked
	conn.Close()
	<-ended
	b.eventually("the connection is not forgotten", func() bool {
		b.g.doors.mu.Lock()
		defer b.g.doors.mu.Unlock()
		return len(b.g.doors.conns) == 0
	})
	if len(asked) > 0 {
		t.Error("the other endpoint is asked for nobody")
	}
}

// TestStops: the gateway ends though clients keep connections, and lets a request end that has begun.
func TestStops(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	serve(t, "10.9.0.1", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(asked)
			<-answer
		}
		fmt.Fprint(w, "ok")
	})
	var idle net.Conn
	got := make(chan string, 1)
	t.Run("", func(t *testing.T) {
		b := newBed(t, nil, route("a", "/"))
		b.endpoints("10.9.0.1")
		idle, _ = net.Dial("tcp", "10.8.0.1:80")
		slow, err := net.Dial("tcp", "10.8.0.1:80")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(slow, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
		go func() {
			all, _ := io.ReadAll(slow)
			slow.Close()
			got <- string(all)
		}()
		<-asked
		go func() {
			for !doorsClosing(b.g) {
				time.Sleep(time.Millisecond)
			}
			close(answer)
		}()
	}) // its end is the gateway's
	if text := <-got; !bytes.HasSuffix([]byte(text), []byte("\r\n\r\nok")) || !strings.Contains(text, "Connection: close") {
		t.Errorf("the request that had begun: %q", text)
	}
	defer idle.Close()
	_ = idle.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := idle.Read(make([]byte, 1)); err != io.EOF && !strings.Contains(fmt.Sprint(err), "reset") {
		t.Errorf("a connection that waits: %v", err)
	}
}

func doorsClosing(g *Gateway) bool {
	g.doors.mu.Lock()
	defer g.doors.mu.Unlock()
	return g.doors.closing
}
