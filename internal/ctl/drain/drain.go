package drain

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/change"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/wait"
)

// Options say what may be lost. Their names are those of kubectl's flags.
type Options struct {
	// Force evicts pods that nobody makes again.
	Force bool
	// IgnoreDaemonSets leaves the pods of daemon sets where they are; they would be made again on the same node.
	IgnoreDaemonSets bool
	// DeleteEmptyDirData evicts pods whose emptyDir volumes are lost with them.
	DeleteEmptyDirData bool
	// Grace is how long pods may take to end, in seconds; negative: as long as each says.
	Grace int64
	// Timeout is for all of it; 0: none.
	Timeout time.Duration
	// DryRun only says which pods would be evicted.
	DryRun bool
}

// Node empties a node.
func Node(ctx context.Context, s *session.Session, node *corev1.Node, o Options) error {
	if !o.DryRun {
		if err := change.Cordon(ctx, s, node, true); err != nil {
			return err
		}
	}
	pods, _, err := client.All[*corev1.Pod](ctx, s.API, api.Pods, client.ListOptions{
		Fields: fields.OneTermEqualSelector("spec.nodeName", node.Name)})
	if err != nil {
		return err
	}
	evict, stay, obstacles := sort(pods, o)
	if len(obstacles) > 0 {
		return exit.Failf(exit.Failed, "%s is closed to new pods, and nothing was evicted:\n  %s", brief.RefOf(node), strings.Join(obstacles, "\n  "))
	}
	for _, p := range stay {
		s.Note("%s%s stays: it belongs to a daemon set", brief.RefOf(p), brief.Namespace(p.Namespace))
	}
	if o.DryRun {
		for _, p := range evict {
			s.Say("%s would be evicted", brief.RefOf(p))
		}
		return nil
	}
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	if err := evictAll(ctx, s, evict, o); err != nil {
		return err
	}
	for _, p := range evict {
		if err := wait.Gone(ctx, s, client.KeyOf(p), p.UID, 0); err != nil {
			return late(ctx, node, o, err)
		}
	}
	s.Say("%s drained", brief.RefOf(node))
	return nil
}

// late says that the time was too short, if it was.
func late(ctx context.Context, node *corev1.Node, o Options, err error) error {
	if ctx.Err() != nil && o.Timeout > 0 {
		return exit.Failf(exit.Failed, "%s is not empty after %s; it stays closed to new pods, and pods that were evicted go on ending", brief.RefOf(node), o.Timeout)
	}
	return err
}

// sort says which pods are to be evicted, which stay, and what stands in the way of each that needs a flag.
func sort(pods []*corev1.Pod, o Options) (evict, stay []*corev1.Pod, obstacles []string) {
	for _, p := range pods {
		name := p.Namespace + "/" + p.Name
		owner := metav1.GetControllerOf(p)
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		switch {
		case p.Annotations[corev1.MirrorPodAnnotationKey] != "":
			continue
		case ended || p.DeletionTimestamp != nil:
		case owner != nil && owner.Kind == "DaemonSet":
			if o.IgnoreDaemonSets {
				stay = append(stay, p)
			} else {
				obstacles = append(obstacles, name+" belongs to a daemon set: --ignore-daemonsets leaves it there")
			}
			continue
		default:
			if owner == nil && !o.Force {
				obstacles = append(obstacles, name+" has no controller that would make it again: --force evicts it for good")
			}
			if volume := emptyDir(p); volume != "" && !o.DeleteEmptyDirData {
				obstacles = append(obstacles, fmt.Sprintf("%s would lose its emptyDir volume %s: --delete-emptydir-data evicts it", name, volume))
			}
		}
		evict = append(evict, p)
	}
	return evict, stay, obstacles
}

// emptyDir is the name of a volume whose data goes with the pod; empty if there is none.
func emptyDir(p *corev1.Pod) string {
	for _, v := range p.Spec.Volumes {
		if v.EmptyDir != nil {
			return v.Name
		}
	}
	return ""
}

// evictAll evicts pods; those that are refused for now again and again.
func evictAll(ctx context.Context, s *session.Session, pods []*corev1.Pod, o Options) error {
	for refused := 0; ; {
		var again []*corev1.Pod
		var last error
		for _, p := range pods {
			err := evict(ctx, s, p, o.Grace)
			switch {
			case err == nil:
				s.Say("%s evicted", brief.RefOf(p))
			case apierrors.IsNotFound(err) || apierrors.IsConflict(err): // it is gone, or another one has its name
			case apierrors.IsTooManyRequests(err):
				again, last = append(again, p), err
			default:
				return err
			}
		}
		if len(again) == 0 {
			return nil
		}
		if len(again) != refused {
			refused = len(again)
			s.Note("%d pods cannot be evicted yet (%v), trying again", refused, last)
		}
		if !s.Sleep(ctx, s.Pause) {
			return exit.Failf(exit.Failed, "%d pods could not be evicted in time: %v", len(again), last)
		}
		pods = again
	}
}

// evict asks for the eviction of this very pod.
func evict(ctx context.Context, s *session.Session, p *corev1.Pod, grace int64) error {
	e := policyv1.Eviction{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))}}
	if grace >= 0 {
		e.DeleteOptions.GracePeriodSeconds = &grace
	}
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	path := "/api/v1/namespaces/" + url.PathEscape(p.Namespace) + "/pods/" + url.PathEscape(p.Name) + "/eviction"
	resp, err := s.API.Do(ctx, http.MethodPost, path, nil, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
