package streaming

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"minik8s/internal/channels"
)

const (
	// portProtocol is the protocol that a SPDY client requests.
	portProtocol = "portforward.k8s.io"
	// maxHalves is how many streams may wait for their other half.
	maxHalves = 256
)

// Ports upgrades the connection and forwards the client's connections in it. Each of them is two streams, one for
// data and one for errors. dial's context ends when the client has disconnected. An error comes before the upgrade.
func (u Upgrader) Ports(w http.ResponseWriter, req *http.Request, dial func(ctx context.Context, port int32) (io.ReadWriteCloser, error)) error {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	var conn httpstream.Connection
	var streams <-chan opened
	var err error
	switch {
	case websocket.IsWebSocketUpgrade(req):
		conn, streams, err = u.tunnelled(w, req)
	case isSPDY(req):
		conn, streams, err = u.accept(ctx, cancel, w, req, portProtocol, maxHalves)
	default:
		err = apierrors.NewBadRequest("Upgrade request required")
	}
	if err != nil || conn == nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // no way to handle the error
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	halves := halves{}
	for {
		select {
		case s := <-streams:
			data, failures, err := halves.pair(s)
			if err != nil {
				s.Reset() //nolint:errcheck // not a valid stream
				conn.RemoveStreams(s.Stream)
				continue
			}
			if data == nil {
				continue
			}
			wg.Go(func() {
				forward(ctx, *data, *failures, dial)
				conn.RemoveStreams(data.Stream, failures.Stream)
			})
		case <-conn.CloseChan():
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// halves are the streams that wait for their other half, by the id of their connection.
type halves map[string]opened

var errNoHalf = errors.New("a stream that is no half of a connection")

// pair returns the connection that s completes; nil if s is its first half. The error means that s is not a valid
// half.
func (h halves) pair(s opened) (data, failures *opened, err error) {
	id, kind := s.Headers().Get(corev1.PortForwardRequestIDHeader), s.Headers().Get(corev1.StreamType)
	other, there := h[id]
	switch {
	case id == "", kind != corev1.StreamTypeData && kind != corev1.StreamTypeError, len(h) >= maxHalves && !there,
		there && other.Headers().Get(corev1.StreamType) == kind:
		return nil, nil, errNoHalf
	case !there:
		h[id] = s
		return nil, nil, nil
	}
	delete(h, id)
	if kind == corev1.StreamTypeError {
		return &other, &s, nil
	}
	return &s, &other, nil
}

// tunnelled returns a SPDY connection inside a WebSocket.
func (u Upgrader) tunnelled(w http.ResponseWriter, req *http.Request) (httpstream.Connection, <-chan opened, error) {
	ws, err := upgrade(w, req, channels.PortForward)
	if err != nil {
		return nil, nil, err
	}
	streams, handler := queue(maxHalves)
	conn, err := spdy.NewServerConnectionWithPings(channels.Tunnel(ws), handler, u.checkEvery())
	if err != nil {
		return nil, nil, nil // it has answered, and closed the connection
	}
	return conn, streams, nil
}

// forward carries one connection to a port of the pod until both directions have ended, or either fails.
func forward(ctx context.Context, data, failures opened, dial func(ctx context.Context, port int32) (io.ReadWriteCloser, error)) {
	<-data.replied
	<-failures.replied
	fail := func(format string, args ...any) {
		fmt.Fprintf(failures, format, args...) //nolint:errcheck // the client may have disconnected
		failures.Close()                       //nolint:errcheck // as above
		data.Reset()                           //nolint:errcheck // as above
	}
	port, err := strconv.ParseUint(data.Headers().Get(corev1.PortHeader), 10, 16)
	if err != nil || port == 0 {
		fail("%q is no port", data.Headers().Get(corev1.PortHeader))
		return
	}
	pod, err := dial(ctx, int32(port))
	if err != nil {
		fail("error forwarding port %d: %v", port, err)
		return
	}
	stop := context.AfterFunc(ctx, func() { pod.Close(); data.Reset() })
	defer stop()
	defer pod.Close() //nolint:errcheck // all data was read, or the stream failed
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(pod, data)
		if half, ok := pod.(interface{ CloseWrite() error }); ok && err == nil {
			half.CloseWrite() //nolint:errcheck // it fails only if the other side has closed it
		} else {
			pod.Close() //nolint:errcheck // as above
		}
		sent <- err
	}()
	_, err = io.Copy(data, pod)
	if err != nil && ctx.Err() == nil {
		fail("error forwarding port %d: %v", port, err)
		return
	}
	// The pod sends no more. Clients take that for the end of the connection.
	data.Close()     //nolint:errcheck // as in fail
	failures.Close() //nolint:errcheck // as in fail
	pod.Close()      //nolint:errcheck // further data is not wanted
	await(sent, closeTimeout)
	data.Reset() //nolint:errcheck // as in fail
}
