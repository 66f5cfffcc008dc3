package ctl

import (
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/client/remote"
)

func (p *program) cpCommand() *cli.Command {
	return &cli.Command{
		Name: "cp", Usage: "copy files to or from a container, which must have tar",
		ArgsUsage: "FILE POD:PATH | POD:PATH FILE", Flags: []cli.Flag{containerFlag()},
		Description: "A directory is copied with all in it. What is copied onto a directory comes to lie in it.",
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return usagef("cp FILE POD:PATH, or cp POD:PATH FILE")
			}
			from, fromPod := podPath(c.Args().Get(0))
			to, toPod := podPath(c.Args().Get(1))
			if (fromPod == "") == (toPod == "") {
				return usagef("cp needs one path of a container, written POD:PATH, and one of this machine")
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			pod, err := s.pod(c.Context, fromPod+toPod)
			if err != nil {
				return err
			}
			container, err := chooseContainer(pod, c.String("container"))
			if err != nil {
				return err
			}
			x := &copying{session: s, c: c, pod: pod, container: container}
			if toPod != "" {
				return x.in(from, to)
			}
			return x.out(from, to)
		},
	}
}

// podPath takes POD:PATH apart; pod is empty for a path of this machine.
func podPath(arg string) (file, pod string) {
	if pod, file, ok := strings.Cut(arg, ":"); ok && pod != "" && !strings.HasPrefix(pod, ".") && !strings.HasPrefix(pod, "/") {
		return file, pod
	}
	return arg, ""
}

// copying is one copy between this machine and a container.
type copying struct {
	*session
	c         *cli.Context
	pod       *corev1.Pod
	container string
}

// run runs a command in the container, with what it says on stderr told if it fails.
func (x *copying) run(in io.Reader, out io.Writer, command ...string) error {
	var complaint strings.Builder
	err := x.api.Exec(x.c.Context, x.pod.Namespace, x.pod.Name, x.container, command, remote.Streams{Stdin: in, Stdout: out, Stderr: &complaint})
	var exit *remote.ExitError
	if errors.As(err, &exit) && complaint.Len() > 0 {
		return failf(codeFailed, "in the container: %s", strings.TrimSpace(complaint.String()))
	}
	if err != nil && strings.Contains(err.Error(), `"tar"`) {
		return failf(codeFailed, "container %s has no tar, which cp needs: %s", x.container, message(err))
	}
	return err
}

// in copies into the container.
func (x *copying) in(from, to string) error {
	if _, err := os.Lstat(from); err != nil {
		return failf(codeNotFound, "%v", err)
	}
	if to == "" {
		to = "."
	}
	// A path that ends like a directory is one, or tar says that it is not there.
	inside := strings.HasSuffix(to, "/")
	if !inside {
		err := x.run(nil, io.Discard, "test", "-d", to)
		var exit *remote.ExitError
		if err != nil && !errors.As(err, &exit) {
			return err
		}
		inside = err == nil
	}
	if inside {
		abs, err := filepath.Abs(from)
		if err != nil {
			return failf(codeFailed, "%v", err)
		}
		to = path.Join(to, filepath.Base(abs))
	}
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := pack(w, from, path.Base(to))
		w.CloseWithError(err)
		packed <- err
	}()
	err := x.run(r, io.Discard, "tar", "-xmf", "-", "-C", path.Dir(to))
	r.Close() //nolint:errcheck // ends the packing, if it has not
	if perr := <-packed; perr != nil && !errors.Is(perr, io.ErrClosedPipe) {
		return failf(codeFailed, "%v", perr)
	}
	return err
}

// out copies out of the container.
func (x *copying) out(from, to string) error {
	from = path.Clean(from)
	if from == "." || from == "/" {
		return usagef("which file of the container? POD:PATH needs a name")
	}
	if st, err := os.Stat(to); err == nil && st.IsDir() {
		to = filepath.Join(to, path.Base(from))
	}
	r, w := io.Pipe()
	got := make(chan error, 1)
	go func() {
		err := unpack(r, path.Base(from), to, x.note)
		r.CloseWithError(err)
		got <- err
	}()
	err := x.run(nil, w, "tar", "-cf", "-", "-C", path.Dir(from), path.Base(from))
	if err != nil {
		w.CloseWithError(errCut)
	}
	w.Close() //nolint:errcheck // pipes do not fail at it
	if uerr := <-got; uerr != nil && !errors.Is(uerr, errCut) {
		return failf(codeFailed, "%v", uerr)
	}
	return err
}

// errCut is what becomes of an archive whose sender failed.
var errCut = errors.New("the archive ends early")
