package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/channels"
	"minik8s/internal/client"
)

// Streams are the caller's ends of a process in a container. Those that are nil are not connected; with
// a TTY, all output comes by Stdout.
type Streams struct {
	TTY            bool
	Stdin          io.Reader // a read in progress at the end is not waited for
	Stdout, Stderr io.Writer
	// Resize are the sizes of the caller's terminal; the first is the initial size.
	Resize <-chan channels.TermSize
}

// ExitError is the error of a command that ran and exited with a code other than 0.
type ExitError struct{ Code int }

func (e *ExitError) Error() string {
	return fmt.Sprintf("command terminated with exit code %d", e.Code)
}

// Exec runs a command in a container of a pod until it ends; an exit code other than 0 is an *ExitError.
// container may be empty if the pod has but one. The end of ctx ends the command.
func (c *Client) Exec(ctx context.Context, ns, pod, container string, command []string, s Streams) error {
	return c.process(ctx, ns, pod, "exec", url.Values{"container": {container}, "command": command}, s)
}

// Attach connects to the streams of a running container until it exits or ctx ends.
func (c *Client) Attach(ctx context.Context, ns, pod, container string, s Streams) error {
	return c.process(ctx, ns, pod, "attach", url.Values{"container": {container}}, s)
}

func (c *Client) process(ctx context.Context, ns, pod, sub string, query url.Values, s Streams) error {
	for name, wanted := range map[string]bool{"stdin": s.Stdin != nil, "stdout": s.Stdout != nil, "stderr": s.Stderr != nil && !s.TTY, "tty": s.TTY} {
		if wanted {
			query.Set(name, "true")
		}
	}
	ws, err := c.webSocket(ctx, ns, pod, sub, query, channels.V5)
	if err != nil {
		return err
	}
	conn := channels.New(ws)
	defer conn.Close() //nolint:errcheck // the result is known
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if s.Stdin != nil {
		go func() {
			// The process may end before its input does.
			if _, err := io.Copy(conn.Writer(channels.Stdin), s.Stdin); err == nil {
				conn.CloseChannel(channels.Stdin) //nolint:errcheck // as above
			}
		}()
	}
	if s.Resize != nil {
		done := make(chan struct{})
		defer close(done)
		go resize(conn, s.Resize, done)
	}
	status, err := receive(conn, s)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return c.failed(ctx, fmt.Errorf("the connection broke: %w", err))
	}
	conn.Bye() //nolint:errcheck // the server has closed already
	return outcome(status)
}

func resize(conn *channels.Conn, sizes <-chan channels.TermSize, done <-chan struct{}) {
	w := json.NewEncoder(conn.Writer(channels.Resize))
	for {
		select {
		case s, ok := <-sizes:
			if !ok || w.Encode(s) != nil {
				return
			}
		case <-done:
			return
		}
	}
}

// receive passes the output on until the status and the end of the stream have come.
func receive(conn *channels.Conn, s Streams) (*metav1.Status, error) {
	var status *metav1.Status
	for {
		m, err := conn.Read()
		if err != nil {
			if status == nil && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			if status != nil {
				err = nil
			}
			return status, err
		}
		var to io.Writer
		switch m.Channel {
		case channels.Stdout:
			to = s.Stdout
		case channels.Stderr:
			to = s.Stderr
		case channels.Error:
			if len(m.Data) == 0 {
				continue
			}
			status = &metav1.Status{}
			if err := json.Unmarshal(m.Data, status); err != nil {
				return nil, fmt.Errorf("the end of the command cannot be read: %w", err)
			}
		}
		if to != nil && len(m.Data) > 0 {
			if _, err := to.Write(m.Data); err != nil {
				return nil, err
			}
		}
	}
}

// outcome turns the status of a stream into an error; nil for success.
func outcome(s *metav1.Status) error {
	if s.Status == metav1.StatusSuccess {
		return nil
	}
	if s.Reason == "NonZeroExitCode" && s.Details != nil {
		for _, cause := range s.Details.Causes {
			if code, err := strconv.Atoi(cause.Message); err == nil && cause.Type == "ExitCode" {
				return &ExitError{code}
			}
		}
	}
	return &apierrors.StatusError{ErrStatus: *s}
}

// webSocket opens a subresource of a pod. A refusal is the same error that any other request would return.
func (c *Client) webSocket(ctx context.Context, ns, pod, sub string, query url.Values, protocol string) (*websocket.Conn, error) {
	path, err := objectPath(client.Key{Kind: api.Pods, Namespace: ns, Name: pod}, sub)
	if err != nil {
		return nil, err
	}
	transport := c.http.Transport.(*http.Transport)
	dialer := websocket.Dialer{
		Proxy: transport.Proxy, NetDialContext: transport.DialContext, HandshakeTimeout: dialTimeout,
		Subprotocols: []string{protocol}, ReadBufferSize: 32 << 10, WriteBufferSize: 32 << 10,
	}
	if transport.TLSClientConfig != nil {
		// WebSocket upgrades need HTTP/1.1.
		dialer.TLSClientConfig = transport.TLSClientConfig.Clone()
		dialer.TLSClientConfig.NextProtos = []string{"http/1.1"}
	}
	header := http.Header{"User-Agent": {c.agent}}
	c.identify(header)
	ws, resp, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(c.base, "http")+path+"?"+query.Encode(), header)
	switch {
	case err == nil && ws.Subprotocol() != protocol:
		ws.Close() //nolint:errcheck // it is of no use
		return nil, fmt.Errorf("the server does not speak %s", protocol)
	case err == nil:
		return ws, nil
	case resp != nil && resp.StatusCode >= http.StatusBadRequest:
		return nil, statusError(resp, request{method: http.MethodGet, path: path})
	}
	return nil, c.failed(ctx, err)
}
