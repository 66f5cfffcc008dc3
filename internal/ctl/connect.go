package ctl

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

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
)

// server is what the commands need of the API: package remote has it, tests put a fake in place.
type server interface {
	client.Interface
	CreateRaw(ctx context.Context, kind *api.Kind, namespace string, doc []byte, opts client.WriteOptions) (api.Object, error)
	Do(ctx context.Context, method, path string, query url.Values, contentType string, body io.Reader) (*http.Response, error)
	Logs(ctx context.Context, ns, pod string, query url.Values) (io.ReadCloser, error)
	Exec(ctx context.Context, ns, pod, container string, command []string, s remote.Streams) error
	Attach(ctx context.Context, ns, pod, container string, s remote.Streams) error
	PortForward(ctx context.Context, ns, pod string) (*remote.Ports, error)
	Table(ctx context.Context, kind *api.Kind, ns, name string, opts client.ListOptions, layout string) (*metav1.Table, error)
	WatchTable(ctx context.Context, kind *api.Kind, opts client.WatchOptions, layout string, each func(remote.TableEvent) error) error
	Version(ctx context.Context) (*version.Info, error)
	At() string
}

const (
	defaultDataDir = "/var/lib/minik8s"
	envDataDir     = "MINIK8S_DATA_DIR"
	userAgent      = "minik8sd-ctl"
)

// where is what a person said about the server.
type where struct {
	server, kubeconfig, context, dataDir string
}

func connectionFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "the `NAMESPACE` to work in (default: \"default\")"},
		&cli.StringFlag{Name: "server", Usage: "the API's `URL`"},
		&cli.StringFlag{Name: "kubeconfig", Usage: "the kubeconfig `FILE` to use"},
		&cli.StringFlag{Name: "context", Usage: "the `CONTEXT` of the kubeconfig to use"},
		&cli.StringFlag{Name: "data-dir", Usage: "the daemon's data `DIRECTORY` on this machine, whose api.sock or admin.kubeconfig " +
			"is used (default: $" + envDataDir + " or " + defaultDataDir + ")"},
	}
}

// session is one command at work: the streams, the server and the namespace.
type session struct {
	*program
	api       server
	namespace string
	// given says that the namespace was named on the command line.
	given bool
}

// session connects to the server that the flags name.
func (p *program) session(c *cli.Context) (*session, error) {
	w := where{server: c.String("server"), kubeconfig: c.String("kubeconfig"), context: c.String("context"), dataDir: c.String("data-dir")}
	api, err := p.connect(p, w)
	if err != nil {
		return nil, err
	}
	s := &session{program: p, api: api, namespace: c.String("namespace"), given: c.String("namespace") != ""}
	if !s.given {
		s.namespace = metav1.NamespaceDefault
	}
	return s, nil
}

// dial finds the server: what the flags name, else the data directory's socket, its kubeconfig,
// and $KUBECONFIG.
func (p *program) dial(w where) (server, error) {
	cfg, err := p.find(w)
	if err != nil {
		return nil, err
	}
	cfg.UserAgent = userAgent
	cfg.Warn = func(text string) { p.note("%s %s", p.paintErr(yellow, "warning:"), text) }
	c, err := remote.New(cfg)
	if err != nil {
		return nil, failf(codeUnreachable, "%v", err)
	}
	return c, nil
}

func (p *program) find(w where) (remote.Config, error) {
	dir := w.dataDir
	if dir == "" {
		dir = p.getenv(envDataDir)
	}
	if dir == "" {
		dir = defaultDataDir
	}
	admin := filepath.Join(dir, "admin.kubeconfig")
	if w.server != "" {
		// A URL alone says nothing of who asks: the kubeconfig at hand does, if it may be read.
		file := w.kubeconfig
		if file == "" {
			file = admin
		}
		cfg, err := remote.ConfigFromKubeconfig(file, w.context)
		if err != nil && w.kubeconfig != "" {
			return cfg, failf(codeUsage, "%v", err)
		}
		if err != nil {
			cfg = remote.Config{}
		}
		cfg.Server = w.server
		return cfg, nil
	}
	if w.kubeconfig != "" {
		cfg, err := remote.ConfigFromKubeconfig(w.kubeconfig, w.context)
		if err != nil {
			return cfg, failf(codeUsage, "%v", err)
		}
		return cfg, nil
	}
	var tried []string
	socket := filepath.Join(dir, "api.sock")
	if err := open(socket); err == nil {
		return remote.Config{Socket: socket}, nil
	} else {
		tried = append(tried, socket+": "+short(err))
	}
	files := []string{admin}
	if env := p.getenv("KUBECONFIG"); env != "" {
		files = append(files, filepath.SplitList(env)...)
	}
	for _, file := range files {
		cfg, err := remote.ConfigFromKubeconfig(file, w.context)
		if err == nil {
			return cfg, nil
		}
		tried = append(tried, file+": "+short(err))
	}
	if p.getenv("KUBECONFIG") == "" {
		tried = append(tried, "$KUBECONFIG: not set")
	}
	return remote.Config{}, failf(codeUnreachable,
		"found no cluster to talk to. Tried:\n  %s\nStart one (minik8sd --role=master,worker), or name one with --server, --kubeconfig or --data-dir.",
		strings.Join(tried, "\n  "))
}

// open says whether someone listens on a socket that this user may open.
func open(socket string) error {
	if _, err := os.Stat(socket); err != nil {
		return err
	}
	conn, err := net.DialTimeout("unix", socket, 2*time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}

// short is an error without the path that stands before it.
func short(err error) string {
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
