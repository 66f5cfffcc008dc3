package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

const head = "GET /a/b?x=1 HTTP/1.1\r\nHost: a.b:80\r\n"

func TestRequests(t *testing.T) {
	for text, want := range map[string]Verdict{
		head + "\r\n": Plain,
		head + "Accept: */*\r\nConnection: Keep-Alive\r\nX:\t y \r\n\r\n": Plain,
		"POST / HTTP/1.1\r\nhost:a\r\ncontent-length: 3\r\n\r\nabc":       Plain,
		"":              More,
		"GE":            More,
		head:            More,
		head + "X: y\r": More,
		head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n":  Ambiguous,
		head + "transfer-encoding : x\r\n\r\n":                            Other,
		head + "Transfer-Encoding: chunked\r\n\r\n":                       Other,
		head + "Transfer-Encoding: xchunked\r\nContent-Length: 3\r\n\r\n": Ambiguous,
		head + "Content-Length: 3\r\nContent-Length: 3\r\n\r\n":           Other,
		head + "Content-Length: +3\r\n\r\n":                               Other,
		head + "Content-Length: 3, 3\r\n\r\n":                             Other,
		head + "Content-Length: 99999999999999999999\r\n\r\n":             Other,
		head + "Content-Length:\r\n\r\n":                                  Other,
		head + "Host: b\r\n\r\n":                                          Other,
		head + "X: a\r\n b\r\n\r\n":                                       Other,
		head + "X: a\rb\r\n\r\n":                                          Other,
		head + "X: a\x00b\r\n\r\n":                                        Other,
		head + "X: a\nContent-Length: 3\r\n\r\n":                          Other,
		head + "X y: a\r\n\r\n":                                           Other,
		head + ": a\r\n\r\n":                                              Other,
		head + "nothing\r\n\r\n":                                          Other,
		head + "Expect: 100-continue\r\n\r\n":                             Other,
		head + "Upgrade: websocket\r\nConnection: upgrade\r\n\r\n":        Other,
		head + "Connection: close, X-Real-IP\r\n\r\n":                     Other,
		head + strings.Repeat("A: b\r\n", 65) + "\r\n":                    Other,
		"GET / HTTP/1.1\r\n\r\n":                                          Other,
		"GET / HTTP/1.0\r\nHost: a\r\n\r\n":                               Other,
		"GET / HTTP/1.1\nHost: a\n\nX: \r\n\r\n":                          Other,
		"GET  / HTTP/1.1\r\nHost: a\r\n\r\n":                              Other,
		"GET /%2e HTTP/1.1\r\nHost: a\r\n\r\n":                            Other,
		"GET /a/../b HTTP/1.1\r\nHost: a\r\n\r\n":                         Other,
		"GET //a HTTP/1.1\r\nHost: a\r\n\r\n":                             Other,
		"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n":                            Other,
		"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n":                       Other,
		"GET /a\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n":                      Other,
		"CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n":                           Other,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                                Other,
		"GET / HTTP/1.1\r\nHost: A.b\r\n\r\n":                             Other,
		"GET / HTTP/1.1\r\nHost: \r\n\r\n":                                Other,
		"\x16\x03\x01":                                                    Other,
		"GET\r\n\r\n":                                                     Other,
		"GET /a\r\n\r\n":                                                  Other,
	} {
		var r Request
		if got := r.Read([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestRequestParts(t *testing.T) {
	b := []byte("POST /a/b?x=%zz HTTP/1.1\r\nHost:  a.b:80 \r\nAccept: text/html\r\nX-Forwarded-For: 1\r\nForwarded: 1\r\nTE: trailers\r\nConnection: close\r\nContent-Length: 2\r\nX-Y: z\r\n\r\nab")
	var r Request
	if r.Read(b) != Plain {
		t.Fatal("not plain")
	}
	got := fmt.Sprintf("%s %s %s %s %d %d %v %v", r.Method.Of(b), r.Path.Of(b), r.Query.Of(b), r.Host.Of(b), r.Length, r.Size, r.Close, r.HTML)
	if want := fmt.Sprintf("POST /a/b ?x=%%zz a.b:80 2 %d true true", len(b)-2); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	lines := ""
	for _, l := range r.Lines[:r.N] {
		lines += string(l.Of(b))
	}
	if lines != "Accept: text/html\r\nX-Y: z\r\n" {
		t.Errorf("passed on: %q", lines)
	}
	if n := testing.AllocsPerRun(100, func() { r.Read(b) }); n > 0 {
		t.Errorf("a head allocates %v times", n)
	}
}

// FuzzRequest: what is plain is read by net/http in the same way.
func FuzzRequest(f *testing.F) {
	f.Add(head + "\r\n")
	f.Add("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nX: y\r\n\r\nab")
	f.Fuzz(func(t *testing.T, text string) {
		b := []byte(text)
		var r Request
		if r.Read(b) != Plain {
			return
		}
		want, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			if strings.Contains(err.Error(), "invalid method") {
				return
			}
			t.Fatalf("%q: plain, and net/http says %v", text, err)
		}
		if string(r.Method.Of(b)) != want.Method || string(r.Path.Of(b)) != want.URL.Path || string(r.Host.Of(b)) != want.Host || string(r.Path.Of(b))+string(r.Query.Of(b)) != want.RequestURI ||
			max(r.Length, 0) != int(want.ContentLength) || len(want.TransferEncoding) > 0 {
			t.Fatalf("%q: %+v, net/http: %+v", text, r, want)
		}
	})
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		text  string
		head  bool
		want  string // status line, length, keep; lines
		fails bool
	}{
		{text: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\n\r\nhello", want: "200 OK 5 true Content-Length: 5|A: b"},
		{text: "HTTP/1.1 200\r\nContent-Length: 0\n\r\n", want: "200 0 true Content-Length: 0"},
		{text: "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello\r\n\r\n", want: "200 OK 5 true Content-Length: 5"},
		{text: "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", want: "200 OK 5 false Content-Length: 5"},
		{text: "HTTP/1.1 200 OK\r\n\r\n", want: "200 OK -2 false "},
		{text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nTrailer: X\r\n\r\n", want: "200 OK -1 true Trailer: X"},
		{text: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", want: "200 OK -1 false "},
		{text: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", want: "200 OK 5 true Content-Length: 5"},
		{text: "HTTP/1.1 200 OK\r\nConnection: X-Hop , close\r\nX-Hop: 1\r\nKeep-Alive: 3\r\nContent-Length: 0\r\n\r\n", want: "200 OK 0 false Content-Length: 0"},
		{text: "HTTP/1.1 204 No Content\r\nA: b\r\nContent-Length: 3\r\n\r\n", want: "204 No Content 0 true A: b"},
		{text: "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", want: "304 Not Modified 0 true Content-Length: 3"},
		{text: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", head: true, want: "200 OK 0 true Content-Length: 3"},
		{text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", head: true, want: "200 OK 0 true "},
		{text: "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", want: "103 Early Hints 0 true Link: x"},
		{text: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", fails: true},
		{text: "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", fails: true},
		{text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", fails: true},
		{text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", fails: true},
		{text: "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", fails: true},
		{text: "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", fails: true},
		{text: "HTTP/1.1 200 OK\r\nA b: c\r\n\r\n", fails: true},
		{text: "HTTP/1.1 2000 OK\r\n\r\n", fails: true},
		{text: "HTTP/1.1 099 OK\r\n\r\n", fails: true},
		{text: "HTTP/2.0 200 OK\r\n\r\n", fails: true},
		{text: "\r\n\r\n", fails: true},
		{text: "hello, I am no HTTP server\r\n\r\n", fails: true},
	} {
		b := []byte(c.text)
		var a Answer
		for i := range b {
			if end := headEnd(b); i < end-1 && !strings.Contains(c.text, "\n\n") {
				if more, ok := a.Read(b[:i], c.head); !more || !ok {
					t.Fatalf("%q: %v %v", b[:i], more, ok)
				}
			}
		}
		more, ok := a.Read(b, c.head)
		if more || ok == c.fails {
			t.Errorf("%q: %v %v", c.text, more, ok)
		}
		if !ok || c.fails {
			continue
		}
		var lines []string
		for _, l := range a.Lines {
			lines = append(lines, string(l.Of(b)))
		}
		if got := fmt.Sprintf("%s %d %v %s", a.Line.Of(b), a.Length, a.Keep, strings.Join(lines, "|")); got != c.want {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
}

func TestChunks(t *testing.T) {
	for text, want := range map[string]string{
		"5\r\nhello\r\n0\r\n\r\nrest":                            "5\r\nhello\r\n0\r\n\r\n",
		"005;ext=\"x\"\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n": "5\r\nhello\r\na\r\n0123456789\r\n0\r\n\r\n",
		"0\r\nX-T: 1\r\nContent-Length: 3\r\nY: 2\r\n\r\n":       "0\r\nX-T: 1\r\nY: 2\r\n\r\n",
		"\r\n":                    "",
		"g\r\n":                   "",
		"-1\r\n":                  "",
		"5\nhello":                "",
		"5\r\nhello0\r\n\r\n":     "",
		"1000000000000000\r\n":    "",
		"0\r\nno colon\r\n\r\n":   "",
		"0\r\nX: y\n\r\n":         "",
		"5 \x00\r\nhello\r\n":     "",
		"1\r\na\n0\r\n\r\n":       "",
		"0\r\nA: b\r\n c\r\n\r\n": "",
	} {
		for _, step := range []int{1, 3, len(text)} {
			var c Chunks
			var out []byte
			ok, taken := true, 0
			for b := []byte(text); len(b) > 0 && ok && !c.Done; {
				k, n := min(step, len(b)), 0
				out, n, ok = c.Next(out, b[:k])
				b, taken = b[n:], taken+n
				if ok && !c.Done && n < k {
					t.Fatalf("%q: %d of %d bytes taken", text, n, k)
				}
			}
			if ok != (want != "") {
				t.Errorf("%q: %v", text, ok)
				continue
			}
			if !ok {
				continue
			}
			if step == len(text) && string(out) != want || !c.Done {
				t.Errorf("%q: %q, want %q", text, out, want)
			}
			if strings.HasSuffix(text, "rest") && taken != len(text)-4 {
				t.Errorf("%q: %d bytes taken", text, taken)
			}
		}
	}
}

// FuzzChunks: what is taken is what net/http reads, and so is what is written.
func FuzzChunks(f *testing.F) {
	f.Add("5\r\nhello\r\n0\r\nX: y\r\n\r\n", 3)
	f.Fuzz(func(t *testing.T, text string, step int) {
		var c Chunks
		var out []byte
		ok := true
		for b := []byte(text); len(b) > 0 && ok && !c.Done; {
			n := 0
			out, n, ok = c.Next(out, b[:min(max(step, 1), len(b))])
			b = b[n:]
		}
		if !ok || !c.Done {
			return
		}
		read := func(s string) []byte {
			answer, err := http.ReadResponse(bufio.NewReader(strings.NewReader("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+s)), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatalf("%q (from %q): net/http says %v", s, text, err)
			}
			return body
		}
		if want := read(string(out)); !bytes.Equal(want, read(text)) {
			t.Fatalf("%q became %q", text, out)
		}
	})
}
