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

// The protocols with which a client requests bytes as they are, or as base64 text.
const (
	binaryProtocol = "binary.k8s.io"
	base64Protocol = "base64.binary.k8s.io"
)

// bearerPrefix begins an entry in the list of WebSocket protocols that is not a protocol but a token: a page's script
// cannot set an Authorization header, so it sends its token there. Package authentication reads it; it is never
// chosen as the protocol.
const bearerPrefix = "base64url.bearer.authorization.k8s.io."

// Bearer returns the token among the WebSocket protocols of a request; empty if there is none.
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

// DropBearer removes the token from the WebSocket protocols of a request that is forwarded.
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

// IsWebSocket reports whether a client requests a WebSocket.
func IsWebSocket(req *http.Request) bool { return websocket.IsWebSocketUpgrade(req) }

// Messages sends one WebSocket message for each Write.
type Messages struct {
	ws      *websocket.Conn
	kind    int
	coded   bool
	timeout time.Duration
}

// Open upgrades the connection to a WebSocket for a streamed answer. Text is sent as it was written; bytes too,
// unless the client has requested base64. The returned context ends when the client has disconnected. A client that
// does not read a message within timeout is cut off. closing ends the answer, and says whether it is whole. An error
// (400) comes before the upgrade.
func (u Upgrader) Open(w http.ResponseWriter, req *http.Request, text bool, timeout time.Duration) (m *Messages, left context.Context, closing func(whole bool), err error) {
	m = &Messages{kind: websocket.TextMessage, timeout: timeout}
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
	go func() { // messages from the client are ignored; an error means that it has disconnected
		defer cancel()
		for {
			if _, _, err := ws.NextReader(); err != nil {
				return
			}
		}
	}()
	ping := func() error { return ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(timeout)) }
	go watchConnection(ctx, u.checkEvery(), ws.NetConn(), ping, cancel)
	return m, ctx, func(whole bool) {
		cancel()
		code := websocket.CloseNormalClosure
		if !whole {
			code = websocket.CloseInternalServerErr
		}
		ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second)) //nolint:errcheck // best effort
		ws.Close()                                                                                                   //nolint:errcheck // no way to handle the error
	}, nil
}

// choose selects a protocol, none if the client offers none, and with it the form of the messages.
func (m *Messages) choose(req *http.Request, text bool) (protocol []string, err error) {
	var offered []string
	for _, p := range websocket.Subprotocols(req) {
		if !strings.HasPrefix(p, bearerPrefix) {
			offered = append(offered, p)
		}
	}
	switch {
	case text && len(offered) > 0:
		return offered[:1], nil // events are sent as text under any protocol; a browser requires one of its own in the answer
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
