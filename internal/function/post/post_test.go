package post

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"minik8s/internal/idle"
)

// server accepts connections and counts them; serve has each of them.
func server(t *testing.T, serve func(conn net.Conn, r *bufio.Reader)) (address string, conns *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns = &atomic.Int64{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			wg.Go(func() {
				defer conn.Close() //nolint:errcheck // a test's
				serve(conn, bufio.NewReader(conn))
			})
		}
	})
	t.Cleanup(func() {
		l.Close() //nolint:errcheck // a test's
		wg.Wait()
	})
	return l.Addr().String(), conns
}

func connectionsTo(t *testing.T, address string) *idle.Pool {
	p := &idle.Pool{Address: address, Dial: (&net.Dialer{}).DialContext, Most: 4, Time: time.Minute}
	t.Cleanup(p.Close)
	return p
}

// said is an answer.
type said struct {
	status int
	body   string
	header http.Header
}

func ask(ctx context.Context, to *idle.Pool, body []byte, headers ...Header) (s said, how Progress, err error) {
	how, err = Send(ctx, to, headers, body, func(r *http.Response) error {
		text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		s = said{r.StatusCode, string(text), r.Header}
		return err
	})
	return s, how, err
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// What a server gets is what was sent, and its answer comes back, however it is framed; the connection serves again where it may.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		closes bool
		want   said
		again  bool
		failed bool
	}{
		"length":        {answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Is: it\r\n\r\nhello", want: said{status: 200, body: "hello"}, again: true},
		"chunks":        {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", want: said{status: 200, body: "hello"}, again: true},
		"nothing":       {answer: "HTTP/1.1 204 No Content\r\n\r\n", want: said{status: 204}, again: true},
		"interim":       {answer: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nx", want: said{status: 201, body: "x"}, again: true},
		"until the end": {answer: "HTTP/1.1 200 OK\r\n\r\nhello", closes: true, want: said{status: 200, body: "hello"}},
		"1.0":           {answer: "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", want: said{status: 200, body: "hello"}},
		"says close":    {answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", want: said{status: 200, body: "hello"}},
		"too much":      {answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", want: said{status: 200, body: "hello"}},
		"another":       {answer: "HTTP/1.1 101 Switching Protocols\r\n\r\n", want: said{status: 101}},
		"too short":     {answer: "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", closes: true, failed: true},
		"no HTTP":       {answer: "hello\r\n\r\n", closes: true, failed: true},
		"no answer":     {closes: true, failed: true},
		"endless head":  {answer: "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-More: "+strings.Repeat("x", 1000)+"\r\n", 100), failed: true},
		"one long line": {answer: "HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 100_000), failed: true},
		"only interim":  {answer: strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 1000), failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, body := range [][]byte{[]byte("a body"), bytes.Repeat([]byte("long "), 40_000), nil} {
				var wrong atomic.Pointer[string]
				at, conns := server(t, func(conn net.Conn, r *bufio.Reader) {
					for {
						req, err := http.ReadRequest(r)
						if err != nil {
							return
						}
						got, err := io.ReadAll(req.Body)
						if err != nil || !bytes.Equal(got, body) || req.Method != "POST" || req.URL.Path != "/" || req.Header.Get("X-Call") != "a b" || req.Host == "" {
							text := fmt.Sprintf("%d bytes, %v, %+v", len(got), err, req)
							wrong.Store(&text)
						}
						io.WriteString(conn, c.answer) //nolint:errcheck // the client may have closed
						if c.closes {
							return
						}
					}
				})
				to := connectionsTo(t, at)
				for range 3 {
					got, how, err := ask(within(t), to, body, Header{"X-Call", "a b"})
					if (err != nil) != c.failed || how != Sent || !c.failed && (got.status != c.want.status || got.body != c.want.body) {
						t.Errorf("a body of %d: %d %q, %d, %v", len(body), got.status, got.body, how, err)
					}
				}
				if n := conns.Load(); (n == 1) != c.again {
					t.Errorf("%d connections were made", n)
				}
				if text := wrong.Load(); text != nil {
					t.Error("the server got", *text)
				}
				to.Close()
			}
		})
	}
}

// A server that closes a connection while nobody uses it costs no request.
func TestClosedWhileIdle(t *testing.T) {
	at, conns := server(t, func(conn net.Conn, r *bufio.Reader) {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)                                        //nolint:errcheck // a test's
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") //nolint:errcheck // a test's
	})
	to := connectionsTo(t, at)
	for i := range 5 {
		if i > 0 { // the end of the last one has come
			conn, reused, err := to.Get(within(t), false)
			if err != nil || !reused {
				t.Fatal(reused, err)
			}
			for end := time.Now().Add(10 * time.Second); conn.Alive() && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			to.Put(conn)
		}
		if got, _, err := ask(within(t), to, []byte("x")); err != nil || got.status != 200 {
			t.Fatalf("request %d: %+v, %v", i, got, err)
		}
	}
	if n := conns.Load(); n != 5 {
		t.Errorf("%d connections", n)
	}
}

// A server may answer before it has read a long request, and then closes.
func TestAnEarlyAnswer(t *testing.T) {
	at, _ := server(t, func(conn net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno") //nolint:errcheck // a test's
		conn.(*net.TCPConn).CloseWrite()                                                                   //nolint:errcheck // a test's
		io.Copy(io.Discard, conn)                                                                          //nolint:errcheck // as well-behaved servers do for a while
	})
	if got, _, err := ask(within(t), connectionsTo(t, at), make([]byte, 8<<20)); err != nil || got.status != 413 || got.body != "no" {
		t.Errorf("%+v, %v", got, err)
	}
}

// The request ends with its context, wherever the server stands still.
func TestEndsWithItsContext(t *testing.T) {
	for name, serve := range map[string]func(net.Conn, *bufio.Reader){
		"reads nothing": nil,
		"answers nothing": func(conn net.Conn, r *bufio.Reader) {
			io.Copy(io.Discard, r) //nolint:errcheck // a test's
		},
		"in the head": func(conn net.Conn, r *bufio.Reader) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Le") //nolint:errcheck // a test's
			io.Copy(io.Discard, r)                                //nolint:errcheck // a test's
		},
		"in the body": func(conn net.Conn, r *bufio.Reader) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhel") //nolint:errcheck // a test's
			io.Copy(io.Discard, r)                                                    //nolint:errcheck // a test's
		},
	} {
		t.Run(name, func(t *testing.T) {
			quit := make(chan struct{})
			at, _ := server(t, func(conn net.Conn, r *bufio.Reader) {
				if serve == nil {
					<-quit
					return
				}
				serve(conn, r)
			})
			defer close(quit)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, how, err := ask(ctx, connectionsTo(t, at), make([]byte, 8<<20))
			if err == nil || how != Sent || ctx.Err() == nil {
				t.Errorf("%d, %v", how, err)
			}
		})
	}
}

// An error says whether anything was sent.
func TestProgress(t *testing.T) {
	at, conns := server(t, func(conn net.Conn, r *bufio.Reader) {})
	to := connectionsTo(t, at)
	for _, h := range []Header{{"X", "a\r\nY: b"}, {"X:", "a"}, {"", "a"}, {"X", "a\x00"}} {
		if _, how, err := ask(within(t), to, nil, h); how != Impossible || err == nil {
			t.Errorf("%q: %d, %v", h, how, err)
		}
	}
	if conns.Load() != 0 {
		t.Error("somebody was asked")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, how, err := ask(over, to, nil); how != Unsent || !errors.Is(err, context.Canceled) {
		t.Errorf("too late: %d, %v", how, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() //nolint:errcheck // a test's
	if _, how, err := ask(within(t), connectionsTo(t, l.Addr().String()), nil); how != Unsent || err == nil {
		t.Errorf("nobody listens: %d, %v", how, err)
	}
}

// deaf is a connection that is closed the moment somebody writes to it.
type deaf struct {
	net.Conn
	on *atomic.Bool
}

func (d *deaf) Write(b []byte) (int, error) {
	if d.on.Swap(false) {
		return 0, syscall.ECONNRESET
	}
	return d.Conn.Write(b)
}

func (d *deaf) SyscallConn() (syscall.RawConn, error) { return d.Conn.(syscall.Conn).SyscallConn() }

// A kept connection that the server closes right before the request costs no request: nothing of it was written.
func TestClosedAtThatMoment(t *testing.T) {
	at, conns := server(t, echoes)
	var on atomic.Bool
	to := connectionsTo(t, at)
	to.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &deaf{c, &on}, err
	}
	for i := range 3 {
		on.Store(i > 0)
		if got, how, err := ask(within(t), to, []byte("x")); err != nil || how != Sent || got.status != 200 || on.Load() {
			t.Errorf("%+v, %d, %v", got, how, err)
		}
	}
	if n := conns.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
	on.Store(true)
	fresh := connectionsTo(t, at)
	fresh.Dial = to.Dial
	if _, how, err := ask(within(t), fresh, []byte("x")); how != Unsent || err == nil {
		t.Errorf("a new connection: %d, %v", how, err)
	}
}

// echoes answers each request.
func echoes(conn net.Conn, r *bufio.Reader) {
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)                                        //nolint:errcheck // a test's
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") //nolint:errcheck // a test's
	}
}

// Long requests, too, have their connections used again.
func TestLongRequests(t *testing.T) {
	at, conns := server(t, echoes)
	to, body := connectionsTo(t, at), make([]byte, 200_000)
	for range 500 {
		if _, _, err := ask(within(t), to, body); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// Many ask at once.
func TestManyAtOnce(t *testing.T) {
	at, _ := server(t, echoes)
	to := connectionsTo(t, at)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for range 50 {
				if got, _, err := ask(within(t), to, make([]byte, i*2000)); err != nil || got.status != 200 {
					t.Error(got, err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkSend(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)   //nolint:errcheck // a test's
		io.WriteString(w, `{"x": 5}`) //nolint:errcheck // a test's
	}))
	defer s.Close()
	at := s.Listener.Addr().String()
	b.Run("post", func(b *testing.B) {
		to := &idle.Pool{Address: at, Dial: (&net.Dialer{}).DialContext, Most: 4, Time: time.Minute}
		defer to.Close()
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := ask(b.Context(), to, []byte(`{"x": 1}`)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("net/http", func(b *testing.B) {
		c := &http.Client{Transport: &http.Transport{}}
		defer c.CloseIdleConnections()
		b.ReportAllocs()
		for b.Loop() {
			resp, err := c.Post("http://"+at+"/", "", strings.NewReader(`{"x": 1}`))
			if err != nil {
				b.Fatal(err)
			}
			io.ReadAll(resp.Body) //nolint:errcheck // a test's
			resp.Body.Close()     //nolint:errcheck // a test's
		}
	})
}
