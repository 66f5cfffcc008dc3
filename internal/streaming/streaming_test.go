package streaming_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"minik8s/internal/channels"
	"minik8s/internal/streaming"
)

// upgrader looks often, so that tests do not wait for it.
var upgrader = streaming.Upgrader{CheckEvery: 20 * time.Millisecond}

type process func(context.Context, streaming.Streams) (int32, error)

// serve is a server whose every path is the process; what Process refuses is answered as text.
func serve(t *testing.T, want streaming.Wants, run process) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if err := upgrader.Process(w, req, want, run); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func dial(t *testing.T, url string, protocols ...string) *channels.Conn {
	t.Helper()
	ws, _, err := (&websocket.Dialer{Subprotocols: protocols}).DialContext(t.Context(), "ws"+strings.TrimPrefix(url, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := channels.New(ws)
	t.Cleanup(func() { c.Close() })
	return c
}

// collect reads all that comes, by channel.
func collect(t *testing.T, c *channels.Conn) map[byte]string {
	t.Helper()
	got := map[byte]string{}
	for {
		m, err := c.Read()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got[m.Channel] += string(m.Data)
	}
}

var all = streaming.Wants{Stdin: true, Stdout: true, Stderr: true}

// shout answers its input, once that has ended, in capitals, and ends with 3.
func shout(_ context.Context, s streaming.Streams) (int32, error) {
	in, err := io.ReadAll(s.Stdin)
	if err != nil {
		return 0, err
	}
	fmt.Fprint(s.Stdout, strings.ToUpper(string(in)))
	fmt.Fprint(s.Stderr, "done")
	return 3, nil
}

func TestChannelsCarryAProcess(t *testing.T) {
	c := dial(t, serve(t, all, shout), channels.V5, channels.V4)
	if c.Protocol() != channels.V5 {
		t.Errorf("agreed on %q", c.Protocol())
	}
	for _, word := range []string{"hello ", "there"} {
		if _, err := io.WriteString(c.Writer(channels.Stdin), word); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.CloseChannel(channels.Stdin); err != nil {
		t.Fatal(err)
	}
	got := collect(t, c)
	if got[channels.Stdout] != "HELLO THERE" || got[channels.Stderr] != "done" {
		t.Errorf("got %q", got)
	}
	checkExit(t, got[channels.Error], 3)
}

func checkExit(t *testing.T, text string, code int) {
	t.Helper()
	var st metav1.Status
	if err := json.Unmarshal([]byte(text), &st); err != nil {
		t.Fatal(err)
	}
	if code == 0 {
		if st.Status != metav1.StatusSuccess {
			t.Errorf("status %s", text)
		}
		return
	}
	if st.Status != metav1.StatusFailure || st.Reason != "NonZeroExitCode" || st.Details == nil || len(st.Details.Causes) != 1 ||
		st.Details.Causes[0].Type != "ExitCode" || st.Details.Causes[0].Message != fmt.Sprint(code) {
		t.Errorf("status %s; want exit code %d", text, code)
	}
}

func TestFailuresAreTold(t *testing.T) {
	for name, fails := range map[string]error{
		"Internal error occurred: broken": errors.New("broken"),
		"too early":                       apierrors.NewBadRequest("too early"),
	} {
		c := dial(t, serve(t, all, func(context.Context, streaming.Streams) (int32, error) { return 0, fails }), channels.V4)
		var st metav1.Status
		if err := json.Unmarshal([]byte(collect(t, c)[channels.Error]), &st); err != nil || st.Message != name || st.Status != metav1.StatusFailure {
			t.Errorf("%+v, %v; want %q", st, err, name)
		}
	}
}

func TestATerminalChangesItsSize(t *testing.T) {
	c := dial(t, serve(t, streaming.Wants{Stdin: true, Stdout: true, Stderr: true, TTY: true}, func(ctx context.Context, s streaming.Streams) (int32, error) {
		if !s.TTY || s.Stderr != nil {
			return 1, nil
		}
		size := <-s.Resize
		fmt.Fprintf(s.Stdout, "%dx%d", size.Width, size.Height)
		return 0, nil
	}), channels.V4)
	for _, text := range []string{"nonsense", `{"Width":0,"Height":0}`, `{"Width":80,"Height":25}`} {
		if err := c.Write(channels.Resize, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	got := collect(t, c)
	if got[channels.Stdout] != "80x25" {
		t.Errorf("got %q", got)
	}
	checkExit(t, got[channels.Error], 0)
}

func TestTheEndOfTheClientEndsTheProcess(t *testing.T) {
	for _, blocked := range []bool{false, true} {
		ended := make(chan error, 1)
		c := dial(t, serve(t, all, func(ctx context.Context, s streaming.Streams) (int32, error) {
			if !blocked {
				io.Copy(io.Discard, s.Stdin)
			}
			<-ctx.Done()
			ended <- ctx.Err()
			return 0, ctx.Err()
		}), channels.V5)
		if err := c.Write(channels.Stdin, []byte("x")); err != nil {
			t.Fatal(err)
		}
		c.Close()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func TestAnExitIsToldWhoStillSends(t *testing.T) {
	c := dial(t, serve(t, all, func(context.Context, streaming.Streams) (int32, error) { return 7, nil }), channels.V5)
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for c.Write(channels.Stdin, make([]byte, 32<<10)) == nil {
		}
	}()
	checkExit(t, collect(t, c)[channels.Error], 7)
	c.Close()
	<-stop
}

func TestWhatIsNotServedIsRefused(t *testing.T) {
	url := serve(t, all, shout)
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body), "Upgrade request required") {
		t.Errorf("without an upgrade: %s", body)
	}
	_, resp, err = (&websocket.Dialer{Subprotocols: []string{"v9.channel.k8s.io"}}).Dial("ws"+strings.TrimPrefix(url, "http"), nil)
	if err == nil || resp == nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("an unknown protocol: %v, %v", resp, err)
	}
}

// spdyClient upgrades a connection as clients of old do.
func spdyClient(t *testing.T, url, protocol string) httpstream.Connection {
	t.Helper()
	raw, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(raw, "POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v3.channel.k8s.io\r\nX-Stream-Protocol-Version: %s\r\n\r\n", protocol)
	var head bytes.Buffer
	for one := make([]byte, 1); !bytes.HasSuffix(head.Bytes(), []byte("\r\n\r\n")); head.Write(one) {
		if _, err := raw.Read(one); err != nil {
			t.Fatalf("%v after %q", err, head.String())
		}
	}
	if !strings.HasPrefix(head.String(), "HTTP/1.1 101") || !strings.Contains(head.String(), protocol) {
		t.Fatalf("answered %q", head.String())
	}
	conn, err := spdy.NewClientConnection(raw)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func open(t *testing.T, conn httpstream.Connection, kv ...string) httpstream.Stream {
	t.Helper()
	h := http.Header{}
	for i := 0; i < len(kv); i += 2 {
		h.Set(kv[i], kv[i+1])
	}
	s, err := conn.CreateStream(h)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSPDYCarriesAProcess(t *testing.T) {
	conn := spdyClient(t, serve(t, all, shout), channels.V4)
	byType := map[string]httpstream.Stream{}
	for _, kind := range []string{corev1.StreamTypeError, corev1.StreamTypeStdin, corev1.StreamTypeStdout, corev1.StreamTypeStderr} {
		byType[kind] = open(t, conn, corev1.StreamType, kind)
	}
	io.WriteString(byType[corev1.StreamTypeStdin], "hello")
	byType[corev1.StreamTypeStdin].Close()
	for kind, want := range map[string]string{corev1.StreamTypeStdout: "HELLO", corev1.StreamTypeStderr: "done"} {
		if got, err := io.ReadAll(byType[kind]); string(got) != want {
			t.Errorf("%s: %q, %v", kind, got, err)
		}
	}
	text, _ := io.ReadAll(byType[corev1.StreamTypeError])
	checkExit(t, string(text), 3)
}
