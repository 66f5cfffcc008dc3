package roles_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// buildImage makes an image of a program of testdata/images, which the daemon loads when it starts.
func (p *process) buildImage(name string) {
	p.t.Helper()
	tmp := p.t.TempDir()
	for _, line := range [][]string{
		{"go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(tmp, name), "../testdata/images/" + name},
		{"go", "run", "../testdata/images/mkimage", "-tag", "minik8s/" + name + ":latest", "-out", filepath.Join(p.dir, "images", name+".tar"),
			"-entrypoint", "/" + name, filepath.Join(tmp, name) + "=/" + name},
	} {
		cmd := exec.Command(line[0], line[1:]...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			p.t.Fatalf("%q: %v: %s", line, err, out)
		}
	}
}

// A program with client-go finds the API in a stock pod by itself: by the variables of default/kubernetes, and the token and CA of
// its account. It may read its own namespace.
func TestInCluster(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	p.buildImage("incluster")
	c := p.up()
	p.make(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	p.make(c, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "ours"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	for namespace, want := range map[string]string{"default": "kubernetes", "team": "ours"} {
		p.make(c, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "client"}, Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "c", Image: "minik8s/incluster", ImagePullPolicy: corev1.PullIfNotPresent}}}})
		p.eventually("the pod in "+namespace+" has ended", func() bool {
			pod, err := client.Get[*corev1.Pod](t.Context(), c, client.Key{Kind: api.Pods, Namespace: namespace, Name: "client"})
			return err == nil && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed)
		})
		said, err := p.command("ctl", "logs", "-n", namespace, "client")
		if err != nil || strings.TrimSpace(said) != want {
			t.Errorf("in %s it says %q, %v; want %q", namespace, said, err, want)
		}
	}
}
