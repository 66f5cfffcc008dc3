package cp

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/client/remote"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// PodPath splits POD:PATH. pod is empty for a path on this machine.
func PodPath(arg string) (file, pod string) {
	if pod, file, ok := strings.Cut(arg, ":"); ok && pod != "" && !strings.HasPrefix(pod, ".") && !strings.HasPrefix(pod, "/") {
		return file, pod
	}
	return arg, ""
}

// Copying is one copy between this machine and a container.
type Copying struct {
	Session   *session.Session
	Pod       *corev1.Pod
	Container string
}

// run runs a command in the container. If the command fails, its stderr is the error.
func (x *Copying) run(ctx context.Context, in io.Reader, out io.Writer, command ...string) error {
	var complaint strings.Builder
	err := x.Session.API.Exec(ctx, x.Pod.Namespace, x.Pod.Name, x.Container, command, remote.Streams{Stdin: in, Stdout: out, Stderr: &complaint})
	var ended *remote.ExitError
	if errors.As(err, &ended) && complaint.Len() > 0 {
		return exit.Failf(exit.Failed, "in the container: %s", strings.TrimSpace(complaint.String()))
	}
	if err != nil && strings.Contains(err.Error(), `"tar"`) {
		return exit.Failf(exit.Failed, "container %s has no tar, which cp needs: %s", x.Container, exit.Message(err))
	}
	return err
}

// In copies a file or a directory from this machine into the container.
func (x *Copying) In(ctx context.Context, from, to string) error {
	if _, err := os.Lstat(from); err != nil {
		return exit.Failf(exit.NotFound, "%v", err)
	}
	if to == "" {
		to = "."
	}
	// A path that ends with a slash is a directory; if it does not exist, tar reports that.
	inside := strings.HasSuffix(to, "/")
	if !inside {
		err := x.run(ctx, nil, io.Discard, "test", "-d", to)
		var ended *remote.ExitError
		if err != nil && !errors.As(err, &ended) {
			return err
		}
		inside = err == nil
	}
	if inside {
		abs, err := filepath.Abs(from)
		if err != nil {
			return exit.Failf(exit.Failed, "%v", err)
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
	err := x.run(ctx, r, io.Discard, "tar", "-xmf", "-", "-C", path.Dir(to))
	r.Close() //nolint:errcheck // ends the packing, if it has not
	if perr := <-packed; perr != nil && !errors.Is(perr, io.ErrClosedPipe) {
		return exit.Failf(exit.Failed, "%v", perr)
	}
	return err
}

// Out copies a file or a directory out of the container.
func (x *Copying) Out(ctx context.Context, from, to string) error {
	from = path.Clean(from)
	if from == "." || from == "/" {
		return exit.Usagef("which file of the container? POD:PATH needs a name")
	}
	if st, err := os.Stat(to); err == nil && st.IsDir() {
		to = filepath.Join(to, path.Base(from))
	}
	r, w := io.Pipe()
	got := make(chan error, 1)
	go func() {
		err := unpack(r, path.Base(from), to, x.Session.Note)
		r.CloseWithError(err)
		got <- err
	}()
	err := x.run(ctx, nil, w, "tar", "-cf", "-", "-C", path.Dir(from), path.Base(from))
	if err != nil {
		w.CloseWithError(errTruncated)
	}
	w.Close() //nolint:errcheck // pipes do not fail at it
	if uerr := <-got; uerr != nil && !errors.Is(uerr, errTruncated) {
		return exit.Failf(exit.Failed, "%v", uerr)
	}
	return err
}

// errTruncated is what the reader of an archive gets if the sender failed.
var errTruncated = errors.New("the archive ends early")
