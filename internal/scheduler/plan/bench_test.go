package plan

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkDecide decides 10,000 pods on 5,000 nodes in each iteration. The result is pods/s.
func BenchmarkDecide(b *testing.B) {
	const nodes, pods = 5000, 10000
	apart := func(i, groups int) *corev1.Pod {
		p := asking(fmt.Sprintf("p%d", i), "100m", "64Mi")
		p.Labels = map[string]string{"group": fmt.Sprint(i % groups)}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}}}
		return p
	}
	for _, kind := range []struct {
		name string
		make func(i int) *corev1.Pod
		s    Strategy
	}{
		{"plain", func(i int) *corev1.Pod { return asking(fmt.Sprintf("p%d", i), "100m", "64Mi") }, Spread},
		{"mixed", func(i int) *corev1.Pod {
			return asking(fmt.Sprintf("p%d", i), fmt.Sprintf("%dm", 50+i%40), "64Mi")
		}, Spread},
		{"unalike", func(i int) *corev1.Pod { return asking(fmt.Sprintf("p%d", i), fmt.Sprintf("%dm", 1+i), "64Mi") }, Spread},
		{"anti-affinity", func(i int) *corev1.Pod { return apart(i, 20) }, Spread},
		{"anti-affinity-packed", func(i int) *corev1.Pod { return apart(i, 20) }, MaxPods},
		{"spread", func(i int) *corev1.Pod {
			p := asking(fmt.Sprintf("p%d", i), "100m", "64Mi")
			p.Labels = map[string]string{"app": "web"}
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 5, TopologyKey: corev1.LabelTopologyZone,
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
			return p
		}, Spread},
	} {
		b.Run(kind.name, func(b *testing.B) {
			objects := make([]*corev1.Pod, pods)
			for i := range objects {
				objects[i] = kind.make(i)
			}
			b.ReportAllocs()
			for range b.N {
				b.StopTimer()
				c := uniform(nodes)
				c.SetStrategy(kind.s)
				b.StartTimer()
				for _, obj := range objects {
					assign(b, c, obj)
				}
			}
			b.ReportMetric(float64(pods*b.N)/b.Elapsed().Seconds(), "pods/s")
		})
	}
}
