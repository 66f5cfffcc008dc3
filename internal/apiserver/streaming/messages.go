package streaming

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The protocols by which a client may ask for bytes as they are, or as text.
const (
	binaryProtocol = "binary.k8s.io"
	base64Protocol = "base64.binary.k8s.io"
)

// bearerPrefix begins a WebSocket protocol that is none: a page's script can set no Authorization header, so
// it puts its token there. It is read by the one who authenticates, and never chosen as the protocol.
const bearerPrefix = "base64url.bearer.authorization.k8s.io."

// Bearer is the token that a client of a WebSocket shows among its protocols; empty if it shows none.
func Bearer(req *http.Request) string {
	if !IsWebSocket(req) {
		return ""
	}
	for _, p := range websocket.Subprotocols(req) {
		if coded, ok := strings.CutPrefix(p, bearerPrefix); ok {
			if token, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(coded, "=")); err == nil {
				return string(token)
			}
		}
	}
	return ""
}

// DropBearer takes the token of a WebSocket's client out of a request that is passed on.
func DropBearer(h http.Header) {
	const name = "Sec-Websocket-Protocol"
	given := h.Values(name)
	if len(given) == 0 {
		return
	}
	var kept []string
	for _, p := range strings.Split(strings.Join(given, ","), ",") {
		if p = strings.TrimSpace(p); p != "" && !strings.HasPrefix(p, bearerPrefix) {
			kept = append(kept, p)
		}
	}
	h.Del(name)
	if len(kept) > 0 {
		h.Set(name, strings.Join(kept, ", "))
	}
}

// IsWebSocket says whether a client asks for a WebSocket.
func IsWebSocket(req *http.Request) bool { return websocket.IsWebSocketUpgrade(req) }

// Messages is what the server says on a WebSocket, a message for each Write.
type Messages struct {
	ws      *websocket.Conn
	kind    int
	coded   bool
	timeout time.Duration
}

// Open makes a WebSocket of the connection for an answer that is a stream. Of text each message is as it was
// written; of bytes it is so unless the client has asked for base64. ctx ends when the client has gone. A client that
// does not take a message within timeout is cut off. An error comes before the upgrade.
func Open(w http.ResponseWriter, req *http.Request, text bool, timeout time.Duration) (*Messages, context.Context, func(), error) {
	m := &Messages{kind: websocket.TextMessage, timeout: timeout}
	chosen, err := m.choose(req, text)
	if err != nil {
		return nil, nil, nil, err
	}
	ws, err := open(w, req, chosen)
	if err != nil {
		return nil, nil, nil, err
	}
	m.ws = ws
	ctx, cancel := context.WithCancel(req.Context())
	go func() { // what the client says is of no interest, that it leaves is
		defer cancel()
		for {
			if _, _, err := ws.NextReader(); err != nil {
				return
			}
		}
	}()
	ping := func() error { return ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(timeout)) }
	go watchConnection(ctx, ws.NetConn(), ping, cancel)
	return m, ctx, func() {
		cancel()
		ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second)) //nolint:errcheck // a courtesy
		ws.Close()                                                                                                                           //nolint:errcheck // nothing is left to be done about it
	}, nil
}

// choose agrees with the client on a protocol, none if it offers none, and so on how messages are written.
func (m *Messages) choose(req *http.Request, text bool) (protocol []string, err error) {
	var offered []string
	for _, p := range websocket.Subprotocols(req) {
		if !strings.HasPrefix(p, bearerPrefix) {
			offered = append(offered, p)
		}
	}
	switch {
	case text && len(offered) > 0:
		return offered[:1], nil // whatever it is called, the events are sent as text; a browser wants its word back
	case text:
		return nil, nil
	case len(offered) == 0:
		m.kind = websocket.BinaryMessage
		return nil, nil
	}
	for _, p := range offered {
		switch p {
		case binaryProtocol:
			m.kind = websocket.BinaryMessage
			return []string{p}, nil
		case base64Protocol:
			m.coded = true
			return []string{p}, nil
		}
	}
	return nil, apierrors.NewBadRequest("of the WebSocket protocols asked for, " + strings.Join(offered, ", ") +
		", none is served: " + binaryProtocol + " and " + base64Protocol + " are")
}

// Write implements io.Writer.
func (m *Messages) Write(p []byte) (int, error) {
	if err := m.ws.SetWriteDeadline(time.Now().Add(m.timeout)); err != nil {
		return 0, err
	}
	data := p
	if m.coded {
		data = base64.StdEncoding.AppendEncode(nil, p)
	}
	if err := m.ws.WriteMessage(m.kind, data); err != nil {
		return 0, err
	}
	return len(p), nil
}
