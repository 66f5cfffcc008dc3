package channels

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// The protocols, with the names by which clients request them.
const (
	V5 = "v5.channel.k8s.io" // V4, plus a message for the end of the input
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
	// closing is the channel for the number of a channel that has ended.
	closing byte = 255
)

const (
	// maxMessage is the largest message that the other side may send.
	maxMessage = 1 << 20
	// pieceSize is how many bytes a Writer sends at once.
	pieceSize = 32 << 10
	// closeTimeout is how long a ping or a goodbye waits for a connection that accepts no data.
	closeTimeout = time.Second
)

// TermSize is the size of a terminal, in characters.
type TermSize struct{ Width, Height uint16 }

// Conn is a WebSocket with channels. Only one goroutine may call Read; all other methods are safe for concurrent use.
type Conn struct {
	ws *websocket.Conn
	mu sync.Mutex // for writing
}

// New makes a Conn from a WebSocket, which it takes over.
func New(ws *websocket.Conn) *Conn {
	ws.SetReadLimit(maxMessage)
	return &Conn{ws: ws}
}

// Protocol returns the protocol that was agreed on.
func (c *Conn) Protocol() string { return c.ws.Subprotocol() }

// Message is a piece of a channel's stream, or its end.
type Message struct {
	Channel byte
	Data    []byte
	End     bool
}

// Read waits for the next message. It returns io.EOF if the other side has said goodbye.
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

// Write sends p on a channel, even if p is empty.
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

// CloseChannel tells the other side that a channel has ended. Only V5 has a message for this.
func (c *Conn) CloseChannel(channel byte) error {
	if c.Protocol() != V5 {
		return nil
	}
	return c.Write(closing, []byte{channel})
}

// Writer returns a channel as an io.Writer. Data that is too large for one message is sent as several.
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

// Ping asks the other side for an answer; Read handles the answer without returning it.
func (c *Conn) Ping() error {
	return c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(closeTimeout))
}

// Bye says goodbye. The other side answers with its own goodbye, and Read then returns io.EOF.
func (c *Conn) Bye() error {
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	return c.ws.WriteControl(websocket.CloseMessage, bye, time.Now().Add(closeTimeout))
}

// Close closes the connection. If the other side has sent something that was not read, data that it has not received
// yet may be lost. To avoid this, call Bye and Read until io.EOF first.
func (c *Conn) Close() error { return c.ws.Close() }
