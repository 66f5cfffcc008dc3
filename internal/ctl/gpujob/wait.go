package gpujob

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/wait"
	"minik8s/internal/gpu/plan"
)

// Wait waits until a job has ended and its files are back, and puts them where the job says. It fails if the job did. What holds the
// job or its files up is said once. A timeout of 0 means no limit.
func Wait(ctx context.Context, s *session.Session, j *minik8s.GpuJob, timeout time.Duration) error {
	name := brief.Ref(api.GpuJobs, j.Name)
	now := j
	told, holds := map[string]bool{}, ""
	look := func(ctx context.Context) (bool, string, error) {
		var err error
		if now, err = current(ctx, s, j); apierrors.IsNotFound(err) {
			return false, "", exit.Failf(exit.NotFound, "%s was deleted while it was waited for", name)
		}
		if err != nil {
			return false, "", err
		}
		st := &now.Status
		ended := apimeta.IsStatusConditionTrue(st.Conditions, minik8s.GpuJobComplete) || apimeta.IsStatusConditionTrue(st.Conditions, minik8s.GpuJobFailed)
		if ended && (st.Results != nil || apimeta.IsStatusConditionTrue(st.Conditions, minik8s.GpuJobResultsReady) || st.Folder == "") {
			return true, "", nil
		}
		state := st.State
		if st.Reason != "" {
			state += " (" + st.Reason + ")"
		}
		if holds = heldUp(st); holds != "" && !told[holds] {
			told[holds] = true
			s.EndProgress()
			s.Note("%s: %s", name, holds)
		}
		return false, state, nil
	}
	took, err := wait.Until(ctx, s, s.Now(), wait.Awaited{Name: name, Look: look, Timeout: timeout, Late: func(state string, took time.Duration) error {
		return exit.Failf(exit.Failed, "%s is not over after %s: %s", name, took, cmp.Or(holds, state))
	}})
	if err != nil {
		return err
	}
	if to := now.Spec.ResultPath; to != "" && now.Status.Results != nil {
		if foreign(to) {
			s.Note("%s: results go to %s, which this machine cannot have: they are fetched into %s", name, to, foreignBase(to))
			to = foreignBase(to)
		}
		if err := FetchAll(ctx, s, now, to); err != nil {
			return err
		}
	}
	if c := apimeta.FindStatusCondition(now.Status.Conditions, minik8s.GpuJobFailed); c != nil && c.Status == metav1.ConditionTrue {
		return exit.Failf(exit.Failed, "%s has ended as %s: %s", name, now.Status.State, c.Message)
	}
	s.Say("%s %s after %s", name, strings.ToLower(now.Status.State), took.Round(time.Second))
	return nil
}

// heldUp is what a job or its results wait for, or why they cannot be had at the moment; "" if nothing is in their way.
func heldUp(st *minik8s.GpuJobStatus) string {
	for _, kind := range []string{minik8s.GpuJobResultsReady, minik8s.GpuJobFollowed, minik8s.GpuJobSubmitted} {
		c := apimeta.FindStatusCondition(st.Conditions, kind)
		switch {
		case c == nil || c.Status == metav1.ConditionTrue || c.Message == "":
		case kind == minik8s.GpuJobSubmitted && c.Reason == plan.ReasonNoSources && apimeta.IsStatusConditionTrue(st.Conditions, minik8s.GpuJobSourcesReady):
			// They have come since.
		default:
			return c.Message
		}
	}
	return ""
}

// foreign reports whether a path is of another system than this: D:\results.
func foreign(path string) bool {
	return os.PathSeparator == '/' && (strings.Contains(path, `\`) || len(path) > 1 && path[1] == ':')
}

// foreignBase is the last part of such a path.
func foreignBase(path string) string {
	base := path[strings.LastIndexAny(path, `\/:`)+1:]
	if base == "" || base == "." || base == ".." {
		return "results"
	}
	return filepath.Base(base)
}
