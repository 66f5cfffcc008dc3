package storage

import (
	"reflect"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// branch is a type that has itself in it.
type branch struct {
	At   metav1.Time
	Name string
	Kids []branch
	Up   *branch
}

// Times are cut wherever they are, and what shares a time that is precise already is not written.
func TestSettle(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)
	whole, micro := at.Truncate(time.Second), at.Truncate(time.Microsecond)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", DeletionTimestamp: new(metav1.NewTime(at)), ManagedFields: []metav1.ManagedFieldsEntry{{Time: new(metav1.NewTime(at))}}},
		Status: corev1.PodStatus{StartTime: new(metav1.NewTime(at)), Conditions: []corev1.PodCondition{{LastTransitionTime: metav1.NewTime(at)}, {}},
			ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}}}}}
	var both sync.WaitGroup
	for range 4 { // whoever comes first makes the settlers
		both.Go(func() { settle(pod.DeepCopy()) })
	}
	both.Wait()
	settle(pod)
	for what, got := range map[string]time.Time{"deletion": pod.DeletionTimestamp.Time, "managed fields": pod.ManagedFields[0].Time.Time, "start": pod.Status.StartTime.Time,
		"condition": pod.Status.Conditions[0].LastTransitionTime.Time, "container": pod.Status.ContainerStatuses[0].State.Running.StartedAt.Time} {
		if !got.Equal(whole) {
			t.Errorf("%s: %s", what, got)
		}
	}
	if !pod.Status.Conditions[1].LastTransitionTime.IsZero() {
		t.Error("no time became one")
	}
	event := &corev1.Event{EventTime: metav1.NewMicroTime(at)}
	if settle(event); !event.EventTime.Equal(new(metav1.NewMicroTime(micro))) {
		t.Error(event.EventTime)
	}
	x := branch{Kids: []branch{{Kids: []branch{{At: metav1.NewTime(at)}}}}, Up: &branch{At: metav1.NewTime(at)}}
	settlerOf(reflect.TypeFor[branch]())(reflect.ValueOf(&x).Elem())
	if !x.Kids[0].Kids[0].At.Time.Equal(whole) || !x.Up.At.Time.Equal(whole) {
		t.Errorf("%+v", x)
	}
	if settlerOf(reflect.TypeFor[corev1.ContainerPort]()) != nil {
		t.Error("there is nothing to settle in a port")
	}
}

func BenchmarkSettle(b *testing.B) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 2), Volumes: make([]corev1.Volume, 2)},
		Status: corev1.PodStatus{Conditions: make([]corev1.PodCondition, 5), ContainerStatuses: make([]corev1.ContainerStatus, 2)}}
	b.ReportAllocs()
	for b.Loop() {
		settle(pod)
	}
}

// Protobuf's encoder asks Quantities for their text, which must not be the first time: others read the object.
func TestQuantitiesAreSettled(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Volumes:    []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(64<<20, resource.BinarySI)}}}},
		Containers: []corev1.Container{{Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}}}}},
	}}
	settle(pod)
	for what, q := range map[string]*resource.Quantity{"size limit": pod.Spec.Volumes[0].EmptyDir.SizeLimit, "divisor": &pod.Spec.Containers[0].Env[0].ValueFrom.ResourceFieldRef.Divisor} {
		if reflect.ValueOf(q).Elem().FieldByName("s").String() == "" {
			t.Errorf("the %s has no text yet", what)
		}
	}
}
