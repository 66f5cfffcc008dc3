package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"minik8s/internal/channels"
)

// Ports is a port-forward connection to one pod. It is safe for use from several goroutines.
type Ports struct {
	conn httpstream.Connection
	next atomic.Int64
}

// PortForward opens a port-forward connection to a pod; the caller closes it.
func (c *Client) PortForward(ctx context.Context, ns, pod string) (*Ports, error) {
	ws, err := c.webSocket(ctx, ns, pod, "portforward", nil, channels.PortForward)
	if err != nil {
		return nil, err
	}
	conn, err := spdy.NewClientConnection(channels.Tunnel(ws))
	if err != nil {
		return nil, err
	}
	return &Ports{conn: conn}, nil
}

// Done is closed when the connection is: the pod or the server has ended.
func (p *Ports) Done() <-chan bool { return p.conn.CloseChan() }

// Close closes it, with all forwarded connections.
func (p *Ports) Close() error { return p.conn.Close() }

// Forward carries one connection to a port of the pod until either side has closed it, and closes it. The error is
// the one that the server reports, such as a refused port.
func (p *Ports) Forward(local io.ReadWriteCloser, port int) error {
	defer local.Close() //nolint:errcheck // nothing is left to send
	h := http.Header{}
	h.Set(corev1.PortHeader, strconv.Itoa(port))
	h.Set(corev1.PortForwardRequestIDHeader, strconv.FormatInt(p.next.Add(1), 10))
	h.Set(corev1.StreamType, corev1.StreamTypeError)
	failures, err := p.conn.CreateStream(h)
	if err != nil {
		return err
	}
	failures.Close() //nolint:errcheck // nothing is written to it
	h.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := p.conn.CreateStream(h)
	if err != nil {
		return err
	}
	defer p.conn.RemoveStreams(failures, data)
	var wg sync.WaitGroup
	wg.Go(func() {
		io.Copy(data, local) //nolint:errcheck // the other direction reports errors
		data.Close()         //nolint:errcheck // as above
	})
	_, err = io.Copy(local, data)
	local.Close() //nolint:errcheck // ends the other direction
	data.Reset()  //nolint:errcheck // as above
	text, _ := io.ReadAll(failures)
	wg.Wait()
	if len(text) > 0 {
		return errors.New(string(text))
	}
	return err
}
