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
	// portProtocol is what a SPDY client asks for.
	portProtocol = "portforward.k8s.io"
	// maxHalves is how many streams may wait for their other half.
	maxHalves = 256
)

// Ports upgrades the connection and forwards what comes through it: each connection of the client's is
// two streams, one for the data and one for what goes wrong. dial's context ends when the client has
// gone. An error comes before the upgrade.
func Ports(w http.ResponseWriter, req *http.Request, dial func(ctx context.Context, port int32) (io.ReadWriteCloser, error)) error {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	var conn httpstream.Connection
	var streams <-chan opened
	var err error
	switch {
	case websocket.IsWebSocketUpgrade(req):
		conn, streams, err = tunnelled(w, req)
	case isSPDY(req):
		conn, streams, err = accept(ctx, cancel, w, req, portProtocol, maxHalves)
	default:
		err = apierrors.NewBadRequest("Upgrade request required")
	}
	if err != nil || conn == nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is left to be done about it
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	halves := halves{}
	for {
		select {
		case s := <-streams:
			data, failures, err := halves.pair(s)
			if err != nil {
				s.Reset() //nolint:errcheck // nonsense
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

// pair is a connection whose second half is s; nil if s is the first. The error is that s cannot be one.
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

// tunnelled is SPDY through a WebSocket.
func tunnelled(w http.ResponseWriter, req *http.Request) (httpstream.Connection, <-chan opened, error) {
	ws, err := upgrade(w, req, channels.PortForward)
	if err != nil {
		return nil, nil, err
	}
	streams, handler := queue(maxHalves)
	conn, err := spdy.NewServerConnectionWithPings(channels.Tunnel(ws), handler, checkInterval)
	if err != nil {
		return nil, nil, nil // it has answered, and closed
	}
	return conn, streams, nil
}

// forward carries one connection to a port of the pod until both directions have ended, or either fails.
func forward(ctx context.Context, data, failures opened, dial func(ctx context.Context, port int32) (io.ReadWriteCloser, error)) {
	<-data.replied
	<-failures.replied
	fail := func(format string, args ...any) {
		fmt.Fprintf(failures, format, args...) //nolint:errcheck // who has gone does not want to know
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
	defer pod.Close() //nolint:errcheck // it has said all, or failed
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(pod, data)
		if half, ok := pod.(interface{ CloseWrite() error }); ok && err == nil {
			half.CloseWrite() //nolint:errcheck // it has been closed by the other side, then
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
	// The pod says no more. Clients take that for the end of the connection.
	data.Close()     //nolint:errcheck // as in fail
	failures.Close() //nolint:errcheck // as in fail
	pod.Close()      //nolint:errcheck // what still comes is not wanted
	await(sent, closeTimeout)
	data.Reset() //nolint:errcheck // as in fail
}
