package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/logs"
	"minik8s/internal/kubelet/plan"
)

// Kubernetes' bounds on a termination message.
const (
	maxTerminationMessage  = 4096 // bytes
	maxTerminationLogLines = 80
	maxTerminationLogBytes = 2048
)

// terminationLog is the file behind terminationMessagePath of one attempt: in the sandbox's scratch directory, so
// that a container can fill no more than its pod's share of it.
func (k *Kubelet) terminationLog(sandbox *cri.Sandbox, uid, container string, attempt int) string {
	if sandbox == nil || sandbox.Scratch == "" {
		return k.keptMessage(uid, container, attempt)
	}
	return filepath.Join(sandbox.Scratch, fmt.Sprintf("%s.%d.message", container, attempt))
}

// keptMessage is the file with the message of an ended attempt, cut to the length that is shown, for the next start
// of the kubelet.
func (k *Kubelet) keptMessage(uid, container string, attempt int) string {
	return filepath.Join(k.volumes.PodDir(uid), "containers", container, fmt.Sprintf("%d.message", attempt))
}

// dropMessages removes the files of an attempt that is removed.
func (w *worker) dropMessages(a plan.Action) {
	for _, file := range []string{
		w.k.keptMessage(string(w.uid), a.Container, a.Attempt),
		w.k.terminationLog(w.view.Sandbox, string(w.uid), a.Container, a.Attempt),
	} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.k.log.Debug("a termination message is left behind", "file", file, "error", err)
		}
	}
}

// terminationMessage is the termination message of an exited container.
func (w *worker) terminationMessage(ctx context.Context, c *cri.Container) string {
	kept := w.k.keptMessage(string(w.uid), c.Name, c.Attempt)
	file := w.k.terminationLog(w.view.Sandbox, string(w.uid), c.Name, c.Attempt)
	msg := readHead(kept, maxTerminationMessage)
	if msg == "" && file != kept {
		if msg = readHead(file, maxTerminationMessage); msg != "" {
			if err := keepMessage(kept, msg); err != nil {
				w.k.log.Debug("a termination message is not kept for the next start", "container", c.Name, "error", err)
			}
		}
	}
	if msg != "" || c.ExitCode == 0 || w.pod == nil {
		return msg
	}
	spec := podspec.Container(w.pod, c.Name)
	if spec == nil || spec.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		return ""
	}
	tail, err := logs.Tail(ctx, c.LogPath, maxTerminationLogLines, maxTerminationLogBytes)
	if err != nil {
		return fmt.Sprintf("Error on reading termination message from logs: %v", err)
	}
	return tail
}

// keepMessage writes a message down. It is the kubelet's own file: the container never sees it.
func keepMessage(path, msg string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(msg), 0o600)
}

// readHead is up to n bytes of a plain file; empty if it cannot be read. The container can write the file's content
// but not replace it, so it cannot be a link.
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
