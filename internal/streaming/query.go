package streaming

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ParseWants reads which streams a client requests from the query of a pod's exec or attach. The error is 400.
func ParseWants(q url.Values) (Wants, error) {
	w := Wants{Stdin: isTrue(q.Get("stdin")), Stdout: isTrue(q.Get("stdout")), Stderr: isTrue(q.Get("stderr")), TTY: isTrue(q.Get("tty"))}
	if !w.Stdin && !w.Stdout && !w.Stderr {
		return w, apierrors.NewBadRequest("you must specify at least one of stdin, stdout, stderr")
	}
	return w, nil
}

// ParseLogOptions reads the query of a pod's log. The error is 400.
func ParseLogOptions(q url.Values) (*corev1.PodLogOptions, error) {
	o := &corev1.PodLogOptions{Container: q.Get("container"), Follow: isTrue(q.Get("follow")),
		Previous: isTrue(q.Get("previous")), Timestamps: isTrue(q.Get("timestamps"))}
	for name, into := range map[string]**int64{"tailLines": &o.TailLines, "sinceSeconds": &o.SinceSeconds, "limitBytes": &o.LimitBytes} {
		v := q.Get(name)
		if v == "" {
			continue
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 || n == 0 && name != "tailLines" {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s: %q is not a positive number", name, v))
		}
		*into = &n
	}
	if v := q.Get("sinceTime"); v != "" {
		t, err := time.Parse(time.RFC3339, v)
		if err != nil {
			return nil, apierrors.NewBadRequest("sinceTime: " + strconv.Quote(v) + " is not a time like 2006-01-02T15:04:05Z")
		}
		o.SinceTime = &metav1.Time{Time: t}
		if o.SinceSeconds != nil {
			return nil, apierrors.NewBadRequest("sinceTime, sinceSeconds: give one of them")
		}
	}
	return o, nil
}

func isTrue(s string) bool { return s == "true" || s == "1" }
