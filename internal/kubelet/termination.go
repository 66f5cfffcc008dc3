package kubelet

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/logs"
)

// Kubernetes' bounds on a termination message.
const (
	maxTerminationMessage  = 4096 // bytes
	maxTerminationLogLines = 80
	maxTerminationLogBytes = 2048
)

// terminationLog is the file behind terminationMessagePath of one attempt.
func (k *Kubelet) terminationLog(uid, container string, attempt int) string {
	return filepath.Join(k.volumes.PodDir(uid), "containers", container, fmt.Sprintf("%d.message", attempt))
}

// terminationMessage is what an exited container left to say.
func (w *worker) terminationMessage(ctx context.Context, c *cri.Container) string {
	msg := readHead(w.k.terminationLog(string(w.uid), c.Name, c.Attempt), maxTerminationMessage)
	if msg != "" || c.ExitCode == 0 || w.pod == nil {
		return msg
	}
	spec := containerNamed(w.pod, c.Name)
	if spec == nil || spec.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		return ""
	}
	tail, err := logs.Tail(ctx, c.LogPath, maxTerminationLogLines, maxTerminationLogBytes)
	if err != nil {
		return fmt.Sprintf("Error on reading termination message from logs: %v", err)
	}
	return tail
}

// readHead is up to n bytes of a plain file; empty if it cannot be read. The container owns the
// file's content but not its name, so it can be no link.
func readHead(path string, n int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, n))
	if err != nil {
		return ""
	}
	return string(data)
}
