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

func TestReplicationController(t *testing.T) {
	const template = "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}"
	for _, x := range []struct {
		name, spec string
		want       []string
	}{
		{"the template's labels stand for it", template, nil},
		{"a selector of its own", "selector: {a: b}\nreplicas: 0\nminReadySeconds: 3\n" + template, nil},
		{"empty", "{}", []string{"Required spec.selector", "Required spec.template"}},
		{"no labels", "template: {spec: {containers: [{name: c, image: x}]}}", []string{"Required spec.selector"}},
		{"others' pods", "selector: {a: c}\n" + template, []string{"Invalid spec.template.metadata.labels"}},
		{"numbers", "replicas: -1\nminReadySeconds: -1\n" + template, []string{"Invalid spec.minReadySeconds", "Invalid spec.replicas"}},
		{"pods that end", "template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, activeDeadlineSeconds: 3, containers: [{name: c, image: x}]}}",
			[]string{"NotSupported spec.template.spec.restartPolicy", "Forbidden spec.template.spec.activeDeadlineSeconds"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			rc := &corev1.ReplicationController{Spec: *decode[corev1.ReplicationControllerSpec](t, x.spec)}
			defaults.ReplicationController(rc)
			expect(t, ReplicationController(rc), x.want...)
		})
	}
	rc := decode[corev1.ReplicationController](t, "{metadata: {labels: {own: x}}, spec: {"+template+"}}")
	defaults.ReplicationController(rc)
	if len(rc.Labels) != 1 || rc.Labels["own"] != "x" || len(rc.Spec.Selector) != 1 || *rc.Spec.Replicas != 1 {
		t.Errorf("%v, %v, %d", rc.Labels, rc.Spec.Selector, *rc.Spec.Replicas)
	}
	rc.Status.ReadyReplicas = -1
	expect(t, ReplicationControllerStatusUpdate(rc, rc), "Invalid status.readyReplicas")
}
