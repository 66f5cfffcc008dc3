package streaming

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/channels"
)

// Wants are the streams that a client requests.
type Wants struct{ Stdin, Stdout, Stderr, TTY bool }

// Streams are the client's ends of a process's streams; those not requested are nil.
type Streams struct {
	TTY            bool
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Resize         <-chan channels.TermSize
}

// process is a connection that carries the streams of one process.
type process interface {
	streams() Streams
	// finish sends the process's result, and closes the connection.
	finish(metav1.Status)
}

// Process upgrades the connection and connects run to the client. run's context ends when the client has
// disconnected. An error comes before the upgrade, and the caller must answer it. run's result is sent to the client.
func (u Upgrader) Process(w http.ResponseWriter, req *http.Request, want Wants, run func(context.Context, Streams) (int32, error)) error {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	if want.TTY {
		want.Stderr = false // a terminal has one output
	}
	var p process
	var err error
	switch {
	case websocket.IsWebSocketUpgrade(req):
		p, err = u.channelProcess(ctx, cancel, w, req, want)
	case isSPDY(req):
		p, err = u.spdyProcess(ctx, cancel, w, req, want)
	default:
		err = apierrors.NewBadRequest("Upgrade request required")
	}
	if err != nil || p == nil {
		return err
	}
	s := p.streams()
	s.TTY = want.TTY
	exit, err := run(ctx, s)
	p.finish(outcome(exit, err))
	return nil
}

// outcome returns the result of a process as the Status that clients expect.
func outcome(exit int32, err error) metav1.Status {
	switch {
	case err != nil:
		if known, ok := err.(apierrors.APIStatus); ok {
			return known.Status()
		}
		return apierrors.NewInternalError(err).Status()
	case exit == 0:
		return metav1.Status{Status: metav1.StatusSuccess}
	}
	return metav1.Status{Status: metav1.StatusFailure, Reason: "NonZeroExitCode",
		Message: fmt.Sprintf("command terminated with non-zero exit code: exit status %d", exit),
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: strconv.Itoa(int(exit))}}}}
}

// resizes are changes of a terminal's size, of which only the last matters.
type resizes chan channels.TermSize

func newResizes() resizes { return make(resizes, 1) }

// put replaces a size that was not yet read.
func (r resizes) put(data []byte) {
	var s channels.TermSize
	if json.Unmarshal(data, &s) != nil || s.Width == 0 || s.Height == 0 {
		return
	}
	for {
		select {
		case r <- s:
			return
		default:
		}
		select {
		case <-r:
		default:
		}
	}
}

// upgrade upgrades the connection to a WebSocket. The error is 400 if the client offers none of the protocols or the
// handshake fails.
func upgrade(w http.ResponseWriter, req *http.Request, protocols ...string) (*websocket.Conn, error) {
	offered := websocket.Subprotocols(req)
	known := false
	for _, p := range protocols {
		for _, o := range offered {
			known = known || p == o
		}
	}
	if !known {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("of the WebSocket protocols asked for, %q, none is served: %q are", offered, protocols))
	}
	return open(w, req, protocols)
}

// open performs the handshake of a WebSocket. The error is 400 if it fails.
func open(w http.ResponseWriter, req *http.Request, protocols []string) (*websocket.Conn, error) {
	var failed error
	up := websocket.Upgrader{Subprotocols: protocols, ReadBufferSize: 32 << 10, WriteBufferSize: 32 << 10,
		WriteBufferPool: &buffers,
		// Clients authenticate with a certificate or token, or as root: there are no cookies that a page could
		// misuse.
		CheckOrigin: func(*http.Request) bool { return true },
		Error: func(_ http.ResponseWriter, _ *http.Request, _ int, reason error) {
			failed = apierrors.NewBadRequest("the WebSocket cannot be opened: " + reason.Error())
		}}
	ws, err := up.Upgrade(w, req, nil)
	if failed != nil {
		return nil, failed
	}
	return ws, err
}

var buffers sync.Pool
