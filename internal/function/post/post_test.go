package wire

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
	"testing"
	"time"
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

func client(t *testing.T) *Client {
	c := &Client{Dial: func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}, MostIdle: 4, IdleTime: time.Minute}
	t.Cleanup(c.CloseIdle)
	return c
}

// said is an answer.
type said struct {
	status int
	body   string
	header http.Header
}

func (c *Client) ask(ctx context.Context, address string, body []byte, headers ...Header) (s said, how Progress, err error) {
	how, err = c.Post(ctx, address, headers, body, func(r *http.Response) error {
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
				cl := client(t)
				for range 3 {
					got, how, err := cl.ask(within(t), at, body, Header{"X-Call", "a b"})
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
				cl.CloseIdle()
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
	c := client(t)
	for i := range 5 {
		if i > 0 { // the end of the last one has come
			conn := c.idle[0].Conn
			for end := time.Now().Add(10 * time.Second); quiet(conn) && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
		}
		if got, _, err := c.ask(within(t), at, []byte("x")); err != nil || got.status != 200 {
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
	if got, _, err := client(t).ask(within(t), at, make([]byte, 8<<20)); err != nil || got.status != 413 || got.body != "no" {
		t.Errorf("%+v, %v", got, err)
	}
}

// The request ends with its context, wherever the server stands still.
func TestEndsWithItsContext(t *testing.T) {
	for name, serve := range map[string]func(net.Conn, *bufio.Reader){
		"reads nothing": func(conn net.Conn, _ *bufio.Reader) { <-t.Context().Done() },
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
				if name == "reads nothing" {
					<-quit
					return
				}
				serve(conn, r)
			})
			defer close(quit)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, how, err := client(t).ask(ctx, at, make([]byte, 8<<20))
			if err == nil || how != Sent || ctx.Err() == nil {
				t.Errorf("%d, %v", how, err)
			}
		})
	}
}

// An error says whether anything was sent.
func TestProgress(t *testing.T) {
	at, conns := server(t, func(conn net.Conn, r *bufio.Reader) {})
	c := client(t)
	for _, h := range []Header{{"X", "a\r\nY: b"}, {"X:", "a"}, {"", "a"}, {"X", "a\x00"}} {
		if _, how, err := c.ask(within(t), at, nil, h); how != Impossible || err == nil {
			t.Errorf("%q: %d, %v", h, how, err)
		}
	}
	if conns.Load() != 0 {
		t.Error("somebody was asked")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() //nolint:errcheck // a test's
	if _, how, err := c.ask(within(t), l.Addr().String(), nil); how != Unsent || err == nil {
		t.Errorf("nobody listens: %d, %v", how, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, how, err := c.ask(over, at, nil); how != Unsent || !errors.Is(err, context.Canceled) {
		t.Errorf("too late: %d, %v", how, err)
	}
}

// So many connections are kept, for so long, and none to another address.
func TestIdleConnections(t *testing.T) {
	open := atomic.Int64{}
	at, _ := server(t, func(conn net.Conn, r *bufio.Reader) {
		open.Add(1)
		defer open.Add(-1)
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)                                        //nolint:errcheck // a test's
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") //nolint:errcheck // a test's
		}
	})
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not in time: %s; %d are open", what, open.Load())
			}
		}
	}
	c := client(t)
	c.IdleTime = 30 * time.Millisecond
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 20 {
				if _, _, err := c.ask(within(t), at, []byte("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	until("no more than are kept", func() bool { return open.Load() <= int64(c.MostIdle) })
	until("they are closed", func() bool { return open.Load() == 0 })
	c.mu.Lock()
	pruning, idle := c.pruning, len(c.idle)
	c.mu.Unlock()
	if pruning || idle > 0 {
		t.Errorf("a timer is set: %t; %d are kept", pruning, idle)
	}
	c.IdleTime = time.Minute
	if _, _, err := c.ask(within(t), at, nil); err != nil {
		t.Fatal(err)
	}
	other, conns := server(t, func(conn net.Conn, r *bufio.Reader) {
		http.ReadRequest(r)                                                  //nolint:errcheck // a test's
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") //nolint:errcheck // a test's
	})
	if _, _, err := c.ask(within(t), other, nil); err != nil || conns.Load() != 1 {
		t.Errorf("%d connections to the other, %v", conns.Load(), err)
	}
	until("that to the first is closed", func() bool { return open.Load() == 0 })
	c.CloseIdle()
}

func BenchmarkPost(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)   //nolint:errcheck // a test's
		io.WriteString(w, `{"x": 5}`) //nolint:errcheck // a test's
	}))
	defer s.Close()
	at := s.Listener.Addr().String()
	b.Run("wire", func(b *testing.B) {
		c := &Client{Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}, MostIdle: 4, IdleTime: time.Minute}
		defer c.CloseIdle()
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := c.ask(b.Context(), at, []byte(`{"x": 1}`)); err != nil {
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
