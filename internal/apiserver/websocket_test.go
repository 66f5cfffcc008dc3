package apiserver_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/kubelet/server/servertest"
	"minik8s/internal/registry"
)

// talkers are pods whose containers have all said the same; of the rest they have nothing.
type talkers struct{ servertest.NoPods }

const said = "hello\nworld"

// late is a container that says it only after a while.
const late = "late"

func (talkers) Logs(ctx context.Context, _, _, container string, opts *corev1.PodLogOptions) (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() {
		if container == late {
			<-time.After(500 * time.Millisecond)
		}
		io.WriteString(w, said) //nolint:errcheck // the reader may go
		if opts.Follow {
			<-ctx.Done()
		}
		w.Close() //nolint:errcheck // it never fails
	}()
	return r, nil
}

// TestStreamsOnWebSockets: how a page in a browser follows a watch or a log: it comes from elsewhere, and shows its
// token among the protocols.
func TestStreamsOnWebSockets(t *testing.T) {
	c := start(t)
	sys := local.New(c.reg, registry.System)
	if code, body := c.do(c.root(), "POST", robots, `{"metadata":{"name":"robot"}}`); code != http.StatusCreated {
		t.Fatal(code, body)
	}
	_, body := c.do(c.root(), "POST", robots+"/robot/token", `{"spec":{}}`)
	var made struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(body), &made); err != nil {
		t.Fatal(err)
	}
	bearer := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(made.Status.Token))
	admin := c.user("admin", registry.GroupMasters).Transport.(*http.Transport).TLSClientConfig
	anyone := &tls.Config{RootCAs: c.ca.Pool()}
	open := func(as *tls.Config, path string, protocols ...string) (*websocket.Conn, *http.Response, error) {
		d := websocket.Dialer{TLSClientConfig: as, Subprotocols: protocols, HandshakeTimeout: 10 * time.Second}
		ws, resp, err := d.Dial("wss://"+c.address+path, http.Header{"Origin": {"http://elsewhere:4466"}})
		if err == nil {
			t.Cleanup(func() { ws.Close() })                     //nolint:errcheck // it is done with
			ws.SetReadDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // it never fails
		}
		return ws, resp, err
	}
	ws, _, err := open(anyone, cms+"?watch=1", "base64.binary.k8s.io", bearer)
	if err != nil || ws.Subprotocol() != "base64.binary.k8s.io" {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if _, err := sys.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b"} {
		var e struct {
			Type   string
			Object corev1.ConfigMap
		}
		kind, data, err := ws.ReadMessage()
		if err != nil || kind != websocket.TextMessage || json.Unmarshal(data, &e) != nil || e.Type != "ADDED" || e.Object.Name != name {
			t.Fatalf("%v %q", err, data)
		}
	}
	if _, resp, err := open(anyone, "/api/v1/namespaces/default/secrets?watch=1", bearer); err == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("secrets: %v", err)
	}
	if _, resp, err := open(anyone, cms+"?watch=1", "base64url.bearer.authorization.k8s.io.eA"); err == nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("with a token that is none: %v", err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if _, err := sys.Create(t.Context(), pod, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	const log = "/api/v1/namespaces/default/pods/p/log"
	if _, body := c.do(c.root(), "GET", log, ""); body != said {
		t.Errorf("plain: %q", body)
	}
	for _, x := range []struct {
		protocols []string
		kind      int
		coded     bool
	}{{nil, websocket.BinaryMessage, false}, {[]string{"binary.k8s.io"}, websocket.BinaryMessage, false}, {[]string{"x", "base64.binary.k8s.io"}, websocket.TextMessage, true}} {
		ws, _, err := open(admin, log, x.protocols...)
		if err != nil {
			t.Fatal(x.protocols, err)
		}
		var got strings.Builder
		for {
			kind, data, err := ws.ReadMessage()
			if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
				break
			}
			if err != nil || kind != x.kind {
				t.Fatal(x.protocols, kind, err)
			}
			if x.coded {
				if data, err = base64.StdEncoding.DecodeString(string(data)); err != nil {
					t.Fatal(err)
				}
			}
			got.Write(data)
		}
		if got.String() != said {
			t.Errorf("%v: %q", x.protocols, got.String())
		}
	}
	if _, resp, err := open(admin, log, "x"); err == nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("an unknown protocol: %v", err)
	}
	ws, _, err = open(admin, log+"?follow=1")
	if err != nil {
		t.Fatal(err)
	}
	if _, data, err := ws.ReadMessage(); err != nil || string(data) != said {
		t.Errorf("followed: %q %v", data, err)
	}
}
