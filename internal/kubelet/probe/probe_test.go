package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	grpchealth "google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/kubelet/cri"
)

type execFunc func(ctx context.Context, id string, cfg cri.ExecConfig) (int32, error)

func (f execFunc) Exec(ctx context.Context, id string, cfg cri.ExecConfig) (int32, error) {
	return f(ctx, id, cfg)
}

// says checks an answer: "" is success, "!" and words is an error that is not an answer.
func says(t *testing.T, what string, err error, want string) {
	t.Helper()
	var f *Failure
	got := ""
	if errors.As(err, &f) {
		got = f.Message
	} else if err != nil {
		got = "!" + err.Error()
	}
	if want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestHTTP(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			fmt.Fprint(w, "fine")
		case "/headers":
			if r.Host != "me" || r.Header.Get("X-A") != "1" || r.UserAgent() != userAgent || r.URL.RawQuery != "q=1" {
				w.WriteHeader(http.StatusTeapot)
			}
		case "/away":
			http.Redirect(w, r, "http://other.invalid/", http.StatusFound)
		case "/here":
			http.Redirect(w, r, "/bad", http.StatusFound)
		case "/hang":
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	port := func(s *httptest.Server) int32 {
		_, p, _ := net.SplitHostPort(s.Listener.Addr().String())
		n, _ := strconv.Atoi(p)
		return int32(n)
	}
	target := Target{IP: "127.0.0.1", Spec: &corev1.Container{Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: port(plain)}}}}
	get := func(path string, change ...func(*corev1.HTTPGetAction)) error {
		h := &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("web"), Scheme: "HTTP"}
		for _, f := range change {
			f(h)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		return Ask(ctx, target, &corev1.ProbeHandler{HTTPGet: h})
	}
	says(t, "yes", get("/ok"), "")
	says(t, "a path without a slash", get("ok"), "")
	says(t, "no", get("/bad"), "HTTP probe failed with statuscode: 500")
	says(t, "elsewhere is yes", get("/away"), "")
	says(t, "on this host it is followed", get("/here"), "statuscode: 500")
	says(t, "in time", get("/hang"), "deadline exceeded")
	says(t, "headers", get("/headers?q=1", func(h *corev1.HTTPGetAction) {
		h.HTTPHeaders = []corev1.HTTPHeader{{Name: "host", Value: "me"}, {Name: "X-A", Value: "1"}}
	}), "")
	says(t, "no such port", get("/ok", func(h *corev1.HTTPGetAction) { h.Port = intstr.FromString("other") }), `!the container has no port named "other"`)
	says(t, "https", get("/ok", func(h *corev1.HTTPGetAction) { h.Port, h.Scheme = intstr.FromInt32(port(secure)), "HTTPS" }), "")
	target.IP = ""
	says(t, "no address", get("/ok"), "!the pod has no address")
	says(t, "another host", get("/ok", func(h *corev1.HTTPGetAction) { h.Host = "127.0.0.1" }), "")
	says(t, "a hook", Call(t.Context(), target, &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{
		Host: "127.0.0.1", Port: intstr.FromString("web"), Path: "/bad"}}), "500")
}

func TestTCPAndGRPC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, states := grpc.NewServer(), grpchealth.NewServer()
	grpc_health_v1.RegisterHealthServer(server, states)
	go server.Serve(l) //nolint:errcheck // it ends with the test
	states.SetServingStatus("bad", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	port := int32(l.Addr().(*net.TCPAddr).Port)
	target := Target{IP: "127.0.0.1"}
	ask := func(service string) error {
		return Ask(t.Context(), target, &corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: port, Service: &service}})
	}
	tcp := &corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}
	says(t, "tcp", Ask(t.Context(), target, tcp), "")
	says(t, "serving", ask(""), "")
	says(t, "not serving", ask("bad"), `service unhealthy (responded with "NOT_SERVING")`)
	says(t, "unknown", ask("none"), "health rpc probe failed")
	server.Stop()
	says(t, "tcp closed", Ask(t.Context(), target, tcp), "refused")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	says(t, "grpc closed", Ask(ctx, target, &corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: port}}), "health rpc")
}

// Servers that speak HTTP/2 alone without TLS, or gRPC with it, are asked in their own way.
func TestOtherProtocols(t *testing.T) {
	h2c := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			w.WriteHeader(http.StatusHTTPVersionNotSupported)
		}
	}))
	h2c.Config.Protocols = new(http.Protocols)
	h2c.Config.Protocols.SetHTTP1(true)
	h2c.Config.Protocols.SetUnencryptedHTTP2(true)
	h2c.Start()
	defer h2c.Close()
	target := Target{IP: "127.0.0.1"}
	get := func(protocol *corev1.HTTPProtocol) error {
		port := intstr.FromInt(h2c.Listener.Addr().(*net.TCPAddr).Port)
		return Ask(t.Context(), target, &corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: port, Protocol: protocol}})
	}
	says(t, "HTTP/1", get(nil), "statuscode: 505")
	says(t, "HTTP/1 by name", get(new(corev1.HTTPProtocolHTTP1)), "statuscode: 505")
	says(t, "HTTP/2", get(new(corev1.HTTPProtocolHTTP2)), "")

	secure := httptest.NewTLSServer(nil) // for its certificate
	defer secure.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&secure.TLS.Certificates[0])))
	grpc_health_v1.RegisterHealthServer(server, grpchealth.NewServer())
	go server.Serve(l) //nolint:errcheck // it ends with the test
	defer server.Stop()
	health := func(mode *corev1.GRPCProbeMode) error {
		return Ask(t.Context(), target, &corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: int32(l.Addr().(*net.TCPAddr).Port), Mode: mode}})
	}
	says(t, "gRPC", health(nil), "health rpc")
	says(t, "gRPC with TLS", health(new(corev1.GRPCProbeModeTLS)), "")
}

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		run  execFunc
		want string
	}{
		{func(context.Context, string, cri.ExecConfig) (int32, error) { return 0, nil }, ""},
		{func(_ context.Context, id string, cfg cri.ExecConfig) (int32, error) {
			fmt.Fprint(cfg.Stderr, id, cfg.Command, strings.Repeat("x", 2*maxOutput))
			return 1, nil
		}, "c1[sh -c no]xxx"},
		{func(context.Context, string, cri.ExecConfig) (int32, error) { return 3, nil }, "exited with 3"},
		{func(context.Context, string, cri.ExecConfig) (int32, error) {
			return 0, &cri.StartError{Message: "no such"}
		}, "!no such"},
		{func(ctx context.Context, _ string, _ cri.ExecConfig) (int32, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}, `command timed out: "sh -c no"`},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := Ask(ctx, Target{Runtime: c.run, ID: "c1"}, &corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "no"}}})
		cancel()
		says(t, c.want, err, c.want)
		if err != nil && len(err.Error()) > maxOutput {
			t.Errorf("%d bytes of output", len(err.Error()))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	says(t, "a sleep that is cut off", Call(ctx, Target{}, &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1000}}), "!context canceled")
	says(t, "no handler", Ask(t.Context(), Target{}, &corev1.ProbeHandler{}), "!the probe names nothing")
}
