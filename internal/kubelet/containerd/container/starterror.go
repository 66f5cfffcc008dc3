package container

import (
	"regexp"
	"strings"

	"github.com/containerd/containerd/errdefs"
)

// runcSays removes what containerd, the shim and runc prepend to the message.
var runcSays = regexp.MustCompile(`(?s)^.*?OCI runtime (?:create|start|exec) failed: (.*)$`)

var runcPrefix = regexp.MustCompile(`^(?:runc (?:create|start) failed: |exec failed: )?(?:unable to (?:start|init) container process: )?(?:error during container init: )?`)

// startFailure reports whether an error of create or start is the container's own fault, with a message for people
// and the exit code to show.
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

// fromGRPC converts an error of grpc into one of package errdefs.
func fromGRPC(err error) error { return errdefs.FromGRPC(err) }
