package stream

import (
	"context"
	"io"
	"net/url"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// Logs prints the log of a container. query is that of pods/log. An interruption is not an error.
func Logs(ctx context.Context, s *session.Session, pod *corev1.Pod, container string, query url.Values) error {
	query.Set("container", container)
	log, err := s.API.Logs(ctx, pod.Namespace, pod.Name, query)
	if err != nil {
		if exit.CodeOf(err) == exit.Failed {
			return exit.Failf(exit.Failed, "%s\nminik8sd ctl why pod %s%s tells more", exit.Message(err), pod.Name, brief.Namespace(pod.Namespace))
		}
		return err
	}
	defer log.Close()
	if _, err = io.Copy(s.Out, log); ctx.Err() != nil {
		return nil
	}
	return err
}
