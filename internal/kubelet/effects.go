package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/podspec"
	"minik8s/internal/client"
	"minik8s/internal/disk"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/objects"
	"minik8s/internal/kubelet/plan"
)

func defaultReason(v plan.Verb) string {
	if v == plan.StartContainer {
		return "RunContainerError"
	}
	return "ContainerCreating"
}

// actionTimeout bounds an action of the runtime, so that one that hangs is retried.
const actionTimeout = 2 * time.Minute

// effectOf returns the function that carries an action out. It is made in the worker's goroutine, from copies of the
// worker's state, and runs in a goroutine of its own.
func (w *worker) effectOf(a plan.Action) func(context.Context) (outcome, error) {
	switch a.Verb {
	case plan.SetUpVolumes:
		return w.doVolumes(w.pod)
	case plan.MakeSandbox:
		return w.doSandbox(w.pod)
	case plan.EnsureImage:
		return w.doImage(a, w.pod)
	case plan.StartContainer:
		return w.doStart(a, w.pod, w.view)
	case plan.StopContainer:
		return w.doStop(a, w.pod)
	case plan.RemoveContainer:
		return w.doRemove(a)
	case plan.RemoveSandbox:
		return func(ctx context.Context) (outcome, error) {
			ctx, cancel := context.WithTimeout(ctx, actionTimeout)
			defer cancel()
			if err := w.k.runtime.RemoveSandbox(ctx, string(w.uid)); err != nil {
				return nil, err
			}
			w.k.cfg.Policies.Release(w.uid)
			return nil, nil
		}
	case plan.TearDown:
		return w.doTearDown()
	default:
		return w.doDelete(w.pod)
	}
}

// doVolumes makes the volumes, or updates those that follow objects or hold tokens.
func (w *worker) doVolumes(pod *corev1.Pod) func(context.Context) (outcome, error) {
	changes := w.state.VolumeChanges
	return func(ctx context.Context) (outcome, error) {
		ctx, cancel := context.WithTimeout(ctx, actionTimeout)
		defer cancel()
		if err := w.k.prepare(ctx, func() error { return w.k.volumes.SetUp(ctx, pod) }); err != nil {
			return nil, &plan.ActionError{Reason: "ContainerCreating", EventReason: "FailedMount", Event: err.Error(),
				Err: err, MinDelay: 500 * time.Millisecond, MaxDelay: 2 * time.Minute, WaitsForObject: onlyMissing(err)}
		}
		return func(w *worker) {
			w.state.VolumesReady, w.state.VolumesApplied, w.state.TokenRenewal = true, changes, w.k.tokens.NextRenewal(w.uid)
		}, nil
	}
}

// onlyMissing reports whether err is only about missing objects, so that a retry does not help before they change.
func onlyMissing(err error) bool {
	switch e := err.(type) {
	case *objects.Missing:
		return true
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if !onlyMissing(one) {
				return false
			}
		}
		return true
	case interface{ Unwrap() error }:
		return onlyMissing(e.Unwrap())
	}
	return false
}

func (w *worker) doSandbox(pod *corev1.Pod) func(context.Context) (outcome, error) {
	return func(ctx context.Context) (outcome, error) {
		ctx, cancel := context.WithTimeout(ctx, actionTimeout)
		defer cancel()
		s, err := w.k.makeSandbox(ctx, pod)
		if err != nil {
			return nil, &plan.ActionError{Reason: "ContainerCreating", EventReason: "FailedCreatePodSandBox",
				Event: "Failed to create pod sandbox: " + err.Error(), Err: err, MinDelay: time.Second, MaxDelay: time.Minute}
		}
		return func(w *worker) { w.view.Sandbox = &s }, nil
	}
}

// makeSandbox makes the pod's cgroup, its directory of logs and its sandbox.
func (k *Kubelet) makeSandbox(ctx context.Context, pod *corev1.Pod) (cri.Sandbox, error) {
	var parent string
	err := k.prepare(ctx, func() (err error) {
		parent, err = k.ensureCgroup(pod)
		return err
	})
	if err != nil {
		return cri.Sandbox{}, fmt.Errorf("cgroup: %w", err)
	}
	if err := disk.Private(k.logDir(pod), 0o750); err != nil {
		return cri.Sandbox{}, fmt.Errorf("log directory: %w", err)
	}
	ports, err := k.ports.Of(ctx, pod)
	if err != nil {
		return cri.Sandbox{}, fmt.Errorf("host ports: %w", err)
	}
	cfg, err := k.config.Sandbox(ctx, pod, k.logDir(pod))
	if err != nil {
		return cri.Sandbox{}, err
	}
	cfg.CgroupParent, cfg.HostPorts = parent, ports
	return k.runtime.EnsureSandbox(ctx, cfg)
}

func (w *worker) doRemove(a plan.Action) func(context.Context) (outcome, error) {
	return func(ctx context.Context) (outcome, error) {
		ctx, cancel := context.WithTimeout(ctx, actionTimeout)
		defer cancel()
		if err := w.k.runtime.RemoveContainer(ctx, a.ID); err != nil {
			return nil, err
		}
		return func(w *worker) {
			delete(w.state.TerminationMessages, a.ID)
			delete(w.state.EndTimes, a.ID)
			delete(w.state.Health, a.ID)
			w.dropMessages(a)
			w.dropOldLogs(a)
		}, nil
	}
}

// dropOldLogs removes the logs of attempts that can no longer be requested.
func (w *worker) dropOldLogs(a plan.Action) {
	n := plan.Newest(w.view, a.Container)
	if w.pod == nil || n == nil || n.Attempt-a.Attempt < 2 {
		return
	}
	base := w.k.logPath(w.pod, a.Container, a.Attempt)
	files, err := filepath.Glob(base + "*") // rotated ones have a suffix
	if err != nil {
		return
	}
	for _, f := range files {
		_ = os.Remove(f)
	}
}

func (w *worker) doTearDown() func(context.Context) (outcome, error) {
	forget := w.objectDeleted || w.pod != nil && w.pod.DeletionTimestamp != nil
	return func(context.Context) (outcome, error) {
		err := errors.Join(w.k.volumes.TearDown(string(w.uid)), w.k.removeCgroup(string(w.uid)))
		if err == nil && forget {
			err = w.k.removeLogs(w.uid)
		}
		if err != nil {
			return nil, &plan.ActionError{Reason: "ContainerCreating", EventReason: "FailedKillPod", Event: "error cleaning up pod: " + err.Error(),
				Err: err, MinDelay: 100 * time.Millisecond, MaxDelay: 30 * time.Second}
		}
		return func(w *worker) {
			w.state.TornDown, w.state.LogsRemoved = true, forget
			w.k.admission.release(w.uid)
			w.k.objects.Drop(w.uid)
			w.k.tokens.Drop(w.uid)
			w.k.ports.Free(w.uid)
		}, nil
	}
}

// removeLogs removes the pod's directory of logs. It is found by the uid alone, since the pod's name may be unknown.
func (k *Kubelet) removeLogs(uid types.UID) error {
	dirs, err := filepath.Glob(filepath.Join(k.LogDir(), "*_"+string(uid)))
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}

func (w *worker) doDelete(pod *corev1.Pod) func(context.Context) (outcome, error) {
	return func(ctx context.Context) (outcome, error) {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		now, uid := int64(0), pod.UID
		key := client.Key{Kind: api.Pods, Namespace: pod.Namespace, Name: pod.Name}
		_, err := w.k.client.Delete(ctx, key, &metav1.DeleteOptions{GracePeriodSeconds: &now,
			Preconditions: &metav1.Preconditions{UID: &uid}})
		if apierrors.IsConflict(err) && w.k.replaced(ctx, key, uid) {
			err = nil
		}
		if err != nil && !isPodNotFound(err) {
			return nil, &plan.ActionError{Err: err, MinDelay: minWriteDelay, MaxDelay: maxWriteDelay}
		}
		return func(w *worker) { w.state.ObjectDeleted = true }, nil
	}
}

// replaced reports whether the API no longer has a pod of that uid. A conflict alone does not prove that: the pod may
// have been written at the same time.
func (k *Kubelet) replaced(ctx context.Context, key client.Key, uid types.UID) bool {
	now, err := k.client.Get(ctx, key)
	return isPodNotFound(err) || err == nil && now.GetUID() != uid
}

// containerEvent is an Event on a container of the pod, or with an empty name on the pod.
func (w *worker) containerEvent(name, kind, reason, format string, args ...any) {
	w.containerEventOf(w.pod, name, kind, reason, format, args...)
}

// containerEventOf is containerEvent for use outside the worker's own goroutine.
func (w *worker) containerEventOf(pod *corev1.Pod, name, kind, reason, format string, args ...any) {
	if pod == nil {
		return
	}
	w.k.rec.EventRef(podspec.Reference(pod, name), kind, reason, format, args...)
}

// VolumeDirs are the directories of a pod's volumes, by their names: of those whose content is the pod's own.
func (k *Kubelet) VolumeDirs(pod *corev1.Pod) map[string]string { return k.volumes.Dirs(pod) }

// LogDir is the directory of all containers' logs.
func (k *Kubelet) LogDir() string { return filepath.Join(k.cfg.DataDir, "pods-logs") }

// logDir is the directory of the logs of the pod's containers: <ns>_<name>_<uid>.
func (k *Kubelet) logDir(pod *corev1.Pod) string {
	return filepath.Join(k.LogDir(), pod.Namespace+"_"+pod.Name+"_"+string(pod.UID))
}

// logPath is the log of one attempt of a container.
func (k *Kubelet) logPath(pod *corev1.Pod, container string, attempt int) string {
	return filepath.Join(k.logDir(pod), container, fmt.Sprintf("%d.log", attempt))
}
