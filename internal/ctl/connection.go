package ctl

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/client/remote"
	"minik8s/internal/ctl/console"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// program is ctl with everything that it takes from its process. Tests replace these parts.
type program struct {
	*console.Console
	getenv func(string) string
	now    func() time.Time
	// pause is how long a waiting loop sleeps between two requests.
	pause time.Duration
	// version is that of minik8s; empty: what Go knows of the build.
	version string
	offline Offline
	connect func(session.Where) (session.Server, error)
}

func newProgram(in io.Reader, out, errOut io.Writer) *program {
	p := &program{Console: console.New(in, out, errOut, os.Getenv), getenv: os.Getenv, now: time.Now, pause: 300 * time.Millisecond}
	p.connect = func(w session.Where) (session.Server, error) { return session.Dial(p.Console, p.getenv, w) }
	return p
}

func connectionFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "the `NAMESPACE` to work in (default: \"default\")"},
		&cli.StringFlag{Name: "server", Usage: "the API's `URL`"},
		&cli.StringFlag{Name: "kubeconfig", Usage: "the kubeconfig `FILE` to use"},
		&cli.StringFlag{Name: "context", Usage: "the `CONTEXT` of the kubeconfig to use"},
		&cli.StringFlag{Name: "data-dir", Usage: "the daemon's data `DIRECTORY` on this machine, whose api.sock, admin.kubeconfig or kubelet.kubeconfig " +
			"is used (default: $" + session.DataDirVariable + " or " + session.DefaultDataDir + ")"},
	}
}

// session connects to the server that the flags name.
func (p *program) session(c *cli.Context) (*session.Session, error) {
	server, err := p.connect(session.Where{Server: c.String("server"), Kubeconfig: c.String("kubeconfig"),
		Context: c.String("context"), DataDir: c.String("data-dir")})
	if err != nil {
		return nil, err
	}
	s := &session.Session{Console: p.Console, API: server, Namespace: c.String("namespace"), Now: p.now, Pause: p.pause}
	if s.NamespaceGiven = s.Namespace != ""; !s.NamespaceGiven {
		s.Namespace = metav1.NamespaceDefault
	}
	return s, nil
}

// exit converts an error for main: the text to print, and the exit code.
func (p *program) exit(err error) error {
	if err == nil {
		return nil
	}
	var ended *remote.ExitError
	if errors.As(err, &ended) {
		return cli.Exit("", ended.Code) // the command has printed everything itself
	}
	return cli.Exit(p.PaintErr(console.Red, "error: ")+exit.Message(err), exit.CodeOf(err))
}
