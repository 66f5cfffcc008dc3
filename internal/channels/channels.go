package channels

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// The protocols, by the names under which a client asks for them.
const (
	V5 = "v5.channel.k8s.io" // V4, and an end of the input can be told
	V4 = "v4.channel.k8s.io"
	// PortForward is a tunnel for SPDY.
	PortForward = "SPDY/3.1+portforward.k8s.io"
)

// The channels of a process.
const (
	Stdin  byte = 0
	Stdout byte = 1
	Stderr byte = 2
	Error  byte = 3 // one metav1.Status, at the end
	Resize byte = 4 // a TermSize in JSON for each change
	// closing carries the number of a channel that has ended.
	closing byte = 255
)

const (
	// maxMessage bounds what the other side may send at once.
	maxMessage = 1 << 20
	// pieceSize is how much a Writer sends at once.
	pieceSize = 32 << 10
	// closeTimeout bounds the wait for a connection that takes no more to take the goodbye.
	closeTimeout = time.Second
)

// TermSize is the size of a terminal, in characters.
type TermSize struct{ Width, Height uint16 }

// Conn is a WebSocket with channels. Read is for one goroutine, all else for any.
type Conn struct {
	ws *websocket.Conn
	mu sync.Mutex // of writing
}

// New takes a WebSocket over.
func New(ws *websocket.Conn) *Conn {
	ws.SetReadLimit(maxMessage)
	return &Conn{ws: ws}
}

// Protocol is the one that was agreed on.
func (c *Conn) Protocol() string { return c.ws.Subprotocol() }

// Message is a piece of one channel's stream, or its end.
type Message struct {
	Channel byte
	Data    []byte
	End     bool
}

// Read waits for the next message; io.EOF says that the other side has said goodbye.
func (c *Conn) Read() (Message, error) {
	for {
		_, data, err := c.ws.ReadMessage()
		switch {
		case websocket.IsCloseError(err, websocket.CloseNormalClosure):
			return Message{}, io.EOF
		case err != nil:
			return Message{}, err
		case len(data) == 0:
			continue
		case data[0] == closing && c.Protocol() == V5:
			if len(data) != 2 {
				return Message{}, errors.New("a message that should close a channel names none")
			}
			return Message{Channel: data[1], End: true}, nil
		}
		return Message{Channel: data[0], Data: data[1:]}, nil
	}
}

// Write sends p on a channel. An empty p is sent, too.
func (c *Conn) Write(channel byte, p []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, err := c.ws.NextWriter(websocket.BinaryMessage)
	if err != nil {
		return err
	}
	if _, err = w.Write([]byte{channel}); err == nil {
		_, err = w.Write(p)
	}
	return errors.Join(err, w.Close())
}

// CloseChannel says that nothing more comes on a channel. Only V5 has words for it.
func (c *Conn) CloseChannel(channel byte) error {
	if c.Protocol() != V5 {
		return nil
	}
	return c.Write(closing, []byte{channel})
}

// Writer is a channel as an io.Writer. What is too large for a message becomes several.
func (c *Conn) Writer(channel byte) io.Writer { return writer{c, channel} }

type writer struct {
	c       *Conn
	channel byte
}

func (w writer) Write(p []byte) (int, error) {
	sent := 0
	for first := true; first || sent < len(p); first = false {
		piece := p[sent:min(len(p), sent+pieceSize)]
		if err := w.c.Write(w.channel, piece); err != nil {
			return sent, err
		}
		sent += len(piece)
	}
	return sent, nil
}

// Ping asks the other side for a sign of life, which Read takes in silence.
func (c *Conn) Ping() error {
	return c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(closeTimeout))
}

// Bye says goodbye. The other side answers with its own, by which Read ends.
func (c *Conn) Bye() error {
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	return c.ws.WriteControl(websocket.CloseMessage, bye, time.Now().Add(closeTimeout))
}

// Close closes the connection. What the other side has not received by then may be lost if it has
// sent something that was not read: say Bye, and Read to the end, before.
func (c *Conn) Close() error { return c.ws.Close() }
