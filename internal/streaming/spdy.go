package streaming

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"minik8s/internal/channels"
)

// openTimeout is how long a client may take to open the streams that it has requested.
const openTimeout = 30 * time.Second

// AcceptedProtocols is the header in which a refusal tells a SPDY client what it could have asked for.
const AcceptedProtocols = httpstream.HeaderAcceptedProtocolVersions

func isSPDY(req *http.Request) bool {
	return httpstream.IsUpgradeRequest(req) && strings.EqualFold(req.Header.Get(httpstream.HeaderUpgrade), spdy.HeaderSpdy31)
}

// opened is a stream that the client has opened; it may be used once replied is closed.
type opened struct {
	httpstream.Stream
	replied <-chan struct{}
}

// accept upgrades the connection to SPDY. It returns an error (403) if the client does not offer the protocol, and no
// connection if the upgrade failed and was already answered. The client's streams arrive in the channel; if more than
// room streams wait there, new ones are refused. disconnected is called when the client disconnects before ctx ends.
func (u Upgrader) accept(ctx context.Context, disconnected func(), w http.ResponseWriter, req *http.Request, protocol string, room int) (httpstream.Connection, <-chan opened, error) {
	known := false
	for _, v := range req.Header.Values(httpstream.HeaderProtocolVersion) {
		for p := range strings.SplitSeq(v, ",") {
			known = known || strings.TrimSpace(p) == protocol
		}
	}
	if !known {
		w.Header().Add(httpstream.HeaderAcceptedProtocolVersions, protocol)
		return nil, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", fmt.Errorf(
			"of the protocols in %s, %q, none is served: %s is", httpstream.HeaderProtocolVersion,
			req.Header.Values(httpstream.HeaderProtocolVersion), protocol))
	}
	w.Header().Set(httpstream.HeaderProtocolVersion, protocol)
	streams, handler := queue(room)
	c := &hijacked{ResponseWriter: w}
	conn := spdy.NewResponseUpgraderWithPings(u.checkEvery()).UpgradeResponse(c, req, handler)
	if conn != nil {
		go watchConnection(ctx, u.checkEvery(), c.conn, func() error { return nil }, disconnected) // SPDY has its own pings
	}
	return conn, streams, nil
}

// queue returns the channel for new streams, and the handler that fills it.
func queue(room int) (<-chan opened, httpstream.NewStreamHandler) {
	streams := make(chan opened, room)
	return streams, func(s httpstream.Stream, replied <-chan struct{}) error {
		select {
		case streams <- opened{s, replied}:
			return nil
		default:
			return errors.New("too many streams at a time")
		}
	}
}

// spdied is a process on a SPDY connection.
type spdied struct {
	conn   httpstream.Connection
	byType map[string]httpstream.Stream
	s      Streams
}

func (u Upgrader) spdyProcess(ctx context.Context, cancel context.CancelFunc, w http.ResponseWriter, req *http.Request, want Wants) (process, error) {
	p := &spdied{byType: map[string]httpstream.Stream{}}
	missing := map[string]bool{corev1.StreamTypeError: true}
	for name, wanted := range map[string]bool{corev1.StreamTypeStdin: want.Stdin, corev1.StreamTypeStdout: want.Stdout,
		corev1.StreamTypeStderr: want.Stderr, corev1.StreamTypeResize: want.TTY} {
		if wanted {
			missing[name] = true
		}
	}
	conn, streams, err := u.accept(ctx, cancel, w, req, channels.V4, len(missing))
	if err != nil || conn == nil {
		return nil, err
	}
	p.conn = conn
	timer := time.NewTimer(openTimeout)
	defer timer.Stop()
	for len(missing) > 0 {
		select {
		case s := <-streams:
			kind := s.Headers().Get(corev1.StreamType)
			if !missing[kind] {
				s.Reset() //nolint:errcheck // it was not requested
				continue
			}
			<-s.replied
			p.byType[kind] = s.Stream
			delete(missing, kind)
			continue
		case <-timer.C:
		case <-conn.CloseChan():
		case <-ctx.Done():
		}
		conn.Close() //nolint:errcheck // the client has disconnected, or does not respond
		return nil, nil
	}
	go func() {
		select {
		case <-conn.CloseChan():
			cancel()
		case <-ctx.Done():
		}
	}()
	p.connect()
	return p, nil
}

func (p *spdied) connect() {
	// A nil stream in an interface would not be nil.
	if s := p.byType[corev1.StreamTypeStdin]; s != nil {
		p.s.Stdin = s
	}
	if s := p.byType[corev1.StreamTypeStdout]; s != nil {
		p.s.Stdout = s
	}
	if s := p.byType[corev1.StreamTypeStderr]; s != nil {
		p.s.Stderr = s
	}
	if s := p.byType[corev1.StreamTypeResize]; s != nil {
		sizes := newResizes()
		p.s.Resize = sizes
		go func() {
			var size json.RawMessage
			for dec := json.NewDecoder(s); dec.Decode(&size) == nil; {
				sizes.put(size)
			}
		}()
	}
}

func (p *spdied) streams() Streams { return p.s }

func (p *spdied) finish(st metav1.Status) {
	if data, err := json.Marshal(st); err == nil {
		p.byType[corev1.StreamTypeError].Write(data) //nolint:errcheck // the client may have disconnected
	}
	for _, s := range p.byType {
		s.Close() //nolint:errcheck // as above
	}
	await(p.conn.CloseChan(), closeTimeout)
	p.conn.Close() //nolint:errcheck // no way to handle the error
}
