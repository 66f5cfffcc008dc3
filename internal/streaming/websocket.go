package streaming

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/channels"
)

// closeTimeout is how long a client may take to close the connection once everything has been sent.
const closeTimeout = 5 * time.Second

// channelled is a process on a WebSocket.
type channelled struct {
	conn  *channels.Conn
	s     Streams
	input *io.PipeWriter // nil: not requested
	sizes resizes
	// received is closed when nothing more comes from the client.
	received chan struct{}
}

func (u Upgrader) channelProcess(ctx context.Context, cancel context.CancelFunc, w http.ResponseWriter, req *http.Request, want Wants) (process, error) {
	ws, err := upgrade(w, req, channels.V5, channels.V4)
	if err != nil {
		return nil, err
	}
	p := &channelled{conn: channels.New(ws), received: make(chan struct{})}
	first := channels.Error
	if want.Stderr {
		p.s.Stderr, first = p.conn.Writer(channels.Stderr), channels.Stderr
	}
	if want.Stdout {
		p.s.Stdout, first = p.conn.Writer(channels.Stdout), channels.Stdout
	}
	if want.Stdin {
		p.s.Stdin, p.input = io.Pipe()
	}
	if want.TTY {
		p.sizes = newResizes()
		p.s.Resize = p.sizes
	}
	// Older clients wait for a first message to know that the connection is open.
	if err := p.conn.Write(first, nil); err != nil {
		cancel()
	}
	go func() {
		defer close(p.received)
		defer cancel()
		p.receive()
	}()
	context.AfterFunc(ctx, p.stopInput)
	go watchConnection(ctx, u.checkEvery(), ws.NetConn(), p.conn.Ping, cancel)
	return p, nil
}

// receive passes on what the client sends until it disconnects.
func (p *channelled) receive() {
	defer p.stopInput()
	for {
		m, err := p.conn.Read()
		switch {
		case err != nil:
			return
		case m.Channel == channels.Stdin && m.End:
			p.stopInput()
		case m.Channel == channels.Stdin && p.input != nil:
			p.input.Write(m.Data) //nolint:errcheck // the process may have closed its input
		case m.Channel == channels.Resize && p.sizes != nil && !m.End:
			p.sizes.put(m.Data)
		}
	}
}

func (p *channelled) stopInput() {
	if p.input != nil {
		p.input.Close()
	}
}

func (p *channelled) streams() Streams { return p.s }

func (p *channelled) finish(st metav1.Status) {
	p.stopInput()
	data, err := json.Marshal(st)
	if err == nil {
		err = p.conn.Write(channels.Error, data)
	}
	if err == nil && p.conn.Bye() == nil {
		// Read what the client still sends; otherwise the status would not reach the client.
		await(p.received, closeTimeout)
	}
	p.conn.Close() //nolint:errcheck // no way to handle the error
}

// await waits until done is closed, but no longer than d.
func await[T any](done <-chan T, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}
