package validation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/defaults"
)

func TestPodTemplate(t *testing.T) {
	for _, x := range []struct {
		name, template string
		want           []string
	}{
		{"of any kind of pod", "{spec: {restartPolicy: Never, activeDeadlineSeconds: 5, containers: [{name: c, image: x}]}}", nil},
		{"no labels needed", "{spec: {containers: [{name: c, image: x}]}}", nil},
		{"empty", "{}", []string{"Required template.spec.containers"}},
		{"mistakes", `{metadata: {labels: {"a b": c}}, spec: {restartPolicy: Soon, containers: [{name: C, image: x}]}}`, []string{
			"Invalid template.metadata.labels", "NotSupported template.spec.restartPolicy", "Invalid template.spec.containers[0].name"}},
		{"not served", "{spec: {runtimeClassName: x, containers: [{name: c, image: x}]}}", []string{"Forbidden template.spec.runtimeClassName"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			pt := decode[corev1.PodTemplate](t, "{metadata: {name: t}, template: "+x.template+"}")
			defaults.PodTemplate(pt)
			expect(t, PodTemplate(pt), x.want...)
		})
	}
}
