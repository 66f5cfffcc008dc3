package drain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSort(t *testing.T) {
	pod := func(name, owner string, change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		if owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: "o", Controller: new(true)}}
		}
		for _, c := range change {
			c(p)
		}
		return p
	}
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	scratch := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	}
	all := []*corev1.Pod{pod("web", "ReplicaSet"), pod("bare", ""), pod("agent", "DaemonSet"), pod("data", "ReplicaSet", scratch),
		pod("done", "", ended, scratch), pod("mirror", "", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "1"} })}
	names := func(pods []*corev1.Pod) string {
		var out []string
		for _, p := range pods {
			out = append(out, p.Name)
		}
		return strings.Join(out, " ")
	}
	for name, c := range map[string]struct {
		o           Options
		evict, stay string
		obstacles   []string
	}{
		"nothing is given": {evict: "web bare data done", obstacles: []string{"x/bare", "--force", "x/agent", "--ignore-daemonsets", "x/data", "scratch", "--delete-emptydir-data"}},
		"all is given":     {o: Options{Force: true, IgnoreDaemonSets: true, DeleteEmptyDirData: true}, evict: "web bare data done", stay: "agent"},
	} {
		evict, stay, obstacles := sort(all, c.o)
		said := strings.Join(obstacles, "\n")
		if names(evict) != c.evict || names(stay) != c.stay || (said == "") != (len(c.obstacles) == 0) {
			t.Errorf("%s: evict %s, stay %s, %q", name, names(evict), names(stay), said)
		}
		for _, part := range c.obstacles {
			if !strings.Contains(said, part) {
				t.Errorf("%s: nothing of %s in %q", name, part, said)
			}
		}
	}
}
