package streaming_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"minik8s/internal/channels"
)

// servePorts is a server of a pod in which an echo listens on port 7, and nobody anywhere else.
func servePorts(t *testing.T) string {
	t.Helper()
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { echo.Close() })
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		err := upgrader.Ports(w, req, func(ctx context.Context, port int32) (io.ReadWriteCloser, error) {
			if port != 7 {
				return nil, errors.New("connection refused")
			}
			return net.Dial("tcp", echo.Addr().String())
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestPortsOverBothCarriers(t *testing.T) {
	carriers := map[string]func(t *testing.T, url string) httpstream.Connection{
		"SPDY": func(t *testing.T, url string) httpstream.Connection { return spdyClient(t, url, "portforward.k8s.io") },
		"WebSocket": func(t *testing.T, url string) httpstream.Connection {
			ws, _, err := (&websocket.Dialer{Subprotocols: []string{channels.PortForward}}).DialContext(t.Context(), "ws"+strings.TrimPrefix(url, "http"), nil)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := spdy.NewClientConnection(channels.Tunnel(ws))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			return conn
		},
	}
	for name, carrier := range carriers {
		t.Run(name, func(t *testing.T) {
			conn := carrier(t, servePorts(t))
			var wg sync.WaitGroup
			for i := range 10 {
				data, failures := pair(t, conn, i, 7)
				wg.Go(func() {
					sent := strings.Repeat(fmt.Sprintf("%d ", i), 100<<10)
					go func() { io.WriteString(data, sent); data.Close() }()
					if got, err := io.ReadAll(data); string(got) != sent {
						t.Errorf("%d of %d bytes came back: %v", len(got), len(sent), err)
					}
					if text, _ := io.ReadAll(failures); len(text) > 0 {
						t.Errorf("it failed: %s", text)
					}
				})
			}
			wg.Wait()
			_, failures := pair(t, conn, 99, 8)
			if text, _ := io.ReadAll(failures); string(text) != "error forwarding port 8: connection refused" {
				t.Errorf("a port where nobody listens: %q", text)
			}
		})
	}
}

// pair opens a connection to a port: two streams.
func pair(t *testing.T, conn httpstream.Connection, id, port int) (data, failures httpstream.Stream) {
	kv := []string{corev1.PortForwardRequestIDHeader, fmt.Sprint(id), corev1.PortHeader, fmt.Sprint(port)}
	failures = open(t, conn, append(kv, corev1.StreamType, corev1.StreamTypeError)...)
	data = open(t, conn, append(kv, corev1.StreamType, corev1.StreamTypeData)...)
	return data, failures
}
