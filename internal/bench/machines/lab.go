package machines

import (
	"errors"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/bench/bed"
	"minik8s/internal/hosts"
)

// newLab is an empty lab for the built daemon, whose file it returns, too.
func newLab() (file string, lab *hosts.Lab, err error) {
	if file, err = filepath.Abs(bed.Binary); err != nil {
		return "", nil, err
	}
	lab, err = hosts.New(file, "build/images")
	return file, lab, err
}

// nodeReady reports whether a Node is Ready.
func nodeReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// poll waits for a condition, up to a minute.
func poll(ok func() bool) error {
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("it did not come to that in a minute")
		}
	}
	return nil
}
