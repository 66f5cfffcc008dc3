package containerd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/containerd/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// runcSays takes off what containerd, the shim and runc put before what happened.
var runcSays = regexp.MustCompile(`(?s)^.*?OCI runtime (?:create|start|exec) failed: (.*)$`)

var runcPrefix = regexp.MustCompile(`^(?:runc (?:create|start) failed: |exec failed: )?(?:unable to (?:start|init) container process: )?(?:error during container init: )?`)

// startFailure says whether an error of create or start is the container's own fault, with a message for
// people and the exit code to show.
func startFailure(err error) (msg string, code int32, ok bool) {
	m := runcSays.FindStringSubmatch(err.Error())
	if m == nil {
		return "", 0, false
	}
	msg = strings.TrimSpace(m[1])
	msg = strings.TrimSuffix(msg, ": unknown")
	msg = msg[len(runcPrefix.FindString(msg)):]
	switch {
	case strings.Contains(msg, "executable file not found"),
		strings.HasPrefix(msg, "exec:") && strings.Contains(msg, "no such file or directory"):
		return msg, 127, true
	case strings.Contains(msg, "permission denied"), strings.Contains(msg, "exec format error"),
		strings.HasPrefix(msg, "exec:") && strings.Contains(msg, "is a directory"):
		return msg, 126, true
	}
	return msg, 128, true
}

// plain takes grpc's wrapping off an error.
func plain(err error) error { return errdefs.FromGRPC(err) }

// makeStdin makes a container's standard input, which nobody writes to yet.
func makeStdin(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	if err := unix.Mkfifo(path, 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("containerd: stdin: %w", err)
	}
	return nil
}
