package session

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
	"minik8s/internal/ctl/console"
	"minik8s/internal/ctl/exit"
)

// Server is what the commands need of the API. Package remote implements it; tests use a fake.
type Server interface {
	client.Interface
	http.RoundTripper
	CreateRaw(ctx context.Context, kind *api.Kind, namespace string, doc []byte, opts client.WriteOptions) (api.Object, error)
	Do(ctx context.Context, method, path string, query url.Values, contentType string, body io.Reader) (*http.Response, error)
	Logs(ctx context.Context, ns, pod string, query url.Values) (io.ReadCloser, error)
	Exec(ctx context.Context, ns, pod, container string, command []string, s remote.Streams) error
	Attach(ctx context.Context, ns, pod, container string, s remote.Streams) error
	PortForward(ctx context.Context, ns, pod string) (*remote.Ports, error)
	Table(ctx context.Context, kind *api.Kind, ns, name string, opts client.ListOptions, layout string) (*metav1.Table, error)
	WatchTable(ctx context.Context, kind *api.Kind, opts client.WatchOptions, layout string, each func(remote.TableEvent) error) error
	Version(ctx context.Context) (*version.Info, error)
	Kinds(ctx context.Context) ([]*api.Kind, error)
	At() string
	URL() string
}

const (
	// DefaultDataDir is the daemon's data directory if no other is set.
	DefaultDataDir = "/var/lib/minik8s"
	// DataDirVariable sets another one.
	DataDirVariable = "MINIK8S_DATA_DIR"
)

// Where is what the user said about the server; all of it may be empty.
type Where struct {
	Server, Kubeconfig, Context, DataDir string
}

// Dial finds the server: the one that the user names, or else through the data directory's socket, its kubeconfig, or
// $KUBECONFIG. The server's warnings go to the console. It fails if no server is found.
func Dial(c *console.Console, getenv func(string) string, w Where) (Server, error) {
	cfg, err := find(getenv, w)
	if err != nil {
		return nil, err
	}
	cfg.UserAgent = Manager
	cfg.Warn = func(text string) { c.Note("%s %s", c.PaintErr(console.Yellow, "warning:"), text) }
	server, err := remote.New(cfg)
	if err != nil {
		return nil, exit.Failf(exit.Unreachable, "%v", err)
	}
	return server, nil
}

// find decides how to reach the server. If the user names none, it tries this machine's socket and kubeconfigs.
func find(getenv func(string) string, w Where) (remote.Config, error) {
	dir := w.DataDir
	if dir == "" {
		dir = getenv(DataDirVariable)
	}
	if dir == "" {
		dir = DefaultDataDir
	}
	admin := filepath.Join(dir, "admin.kubeconfig")
	switch {
	case w.Server != "":
		return byURL(w, admin)
	case w.Kubeconfig != "":
		return fromKubeconfig(w.Kubeconfig, w.Context)
	}
	var tried []string
	socket := filepath.Join(dir, "api.sock")
	err := dialSocket(socket)
	if err == nil {
		return remote.Config{Socket: socket}, nil
	}
	tried = append(tried, socket+": "+reason(err))
	files := []string{admin}
	if env := getenv("KUBECONFIG"); env != "" {
		files = append(files, filepath.SplitList(env)...)
	}
	files = append(files, filepath.Join(dir, "kubelet.kubeconfig")) // on a worker: what its node may see
	for _, file := range files {
		cfg, err := remote.ConfigFromKubeconfig(file, w.Context)
		if err == nil {
			return cfg, nil
		}
		tried = append(tried, file+": "+reason(err))
	}
	if getenv("KUBECONFIG") == "" {
		tried = append(tried, "$KUBECONFIG: not set")
	}
	return remote.Config{}, exit.Failf(exit.Unreachable,
		"found no cluster to talk to. Tried:\n  %s\nStart one (minik8sd --role=master,worker), or name one with --server, --kubeconfig or --data-dir.",
		strings.Join(tried, "\n  "))
}

// byURL is for a server given by its URL. A URL has no credentials: they come from the kubeconfig that was given, or
// from the admin's, if this user may read it.
func byURL(w Where, admin string) (remote.Config, error) {
	cfg, err := remote.Config{}, error(nil)
	if w.Kubeconfig != "" {
		cfg, err = fromKubeconfig(w.Kubeconfig, w.Context)
	} else if found, err := remote.ConfigFromKubeconfig(admin, w.Context); err == nil {
		cfg = found
	}
	cfg.Server = w.Server
	return cfg, err
}

func fromKubeconfig(file, context string) (remote.Config, error) {
	cfg, err := remote.ConfigFromKubeconfig(file, context)
	if err != nil {
		return cfg, exit.Failf(exit.Usage, "%v", err)
	}
	return cfg, nil
}

// dialSocket checks that somebody listens on a socket and that this user may open it.
func dialSocket(socket string) error {
	if _, err := os.Stat(socket); err != nil {
		return err
	}
	conn, err := net.DialTimeout("unix", socket, 2*time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}

// reason returns an error's text without the path in front of it.
func reason(err error) string {
	switch {
	case os.IsNotExist(err) || strings.Contains(err.Error(), "no such file"):
		return "is not there"
	case os.IsPermission(err) || strings.Contains(err.Error(), "permission denied"):
		return "may not be opened by this user (try sudo)"
	case strings.Contains(err.Error(), "connection refused"):
		return "nobody listens"
	}
	return err.Error()
}
