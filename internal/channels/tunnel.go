package channels

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Tunnel makes a WebSocket a net.Conn. Each Write is one message; Read ignores the limits of messages.
func Tunnel(ws *websocket.Conn) net.Conn { return &tunnel{ws: ws} }

type tunnel struct {
	ws   *websocket.Conn
	rest io.Reader // rest of the message being read

	mu sync.Mutex // for writing
}

// Read may only be called by one goroutine, as usual for a connection that carries a protocol.
func (t *tunnel) Read(p []byte) (int, error) {
	for {
		if t.rest == nil {
			kind, r, err := t.ws.NextReader()
			if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
				return 0, io.EOF
			}
			if err != nil {
				return 0, err
			}
			if kind != websocket.BinaryMessage {
				return 0, errors.New("a tunnel carries binary messages only")
			}
			t.rest = r
		}
		n, err := t.rest.Read(p)
		if errors.Is(err, io.EOF) {
			t.rest, err = nil, nil
		}
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

func (t *tunnel) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.ws.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (t *tunnel) Close() error {
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	t.ws.WriteControl(websocket.CloseMessage, bye, time.Now().Add(closeTimeout)) //nolint:errcheck // it is closed either way
	return t.ws.Close()
}

func (t *tunnel) LocalAddr() net.Addr                { return t.ws.LocalAddr() }
func (t *tunnel) RemoteAddr() net.Addr               { return t.ws.RemoteAddr() }
func (t *tunnel) SetReadDeadline(at time.Time) error { return t.ws.SetReadDeadline(at) }

func (t *tunnel) SetWriteDeadline(at time.Time) error { return t.ws.SetWriteDeadline(at) }

func (t *tunnel) SetDeadline(at time.Time) error {
	return errors.Join(t.SetReadDeadline(at), t.SetWriteDeadline(at))
}
