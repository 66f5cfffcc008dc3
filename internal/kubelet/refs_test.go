package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/podspec"
	"minik8s/internal/client"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan/plantest"
)

func (b *bed) put(obj api.Object) {
	b.t.Helper()
	obj.SetNamespace("default")
	_, err := b.api.Create(b.t.Context(), obj, client.WriteOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = b.api.Update(b.t.Context(), obj, client.WriteOptions{})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func theMap(name string, kv ...string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{}}
	for i := 0; i < len(kv); i += 2 {
		m.Data[kv[i]] = kv[i+1]
	}
	return m
}

func fromMap(name, key string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}}
}

func mapVolume(name string) corev1.Volume {
	return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}
}

func waitsFor(reason, message string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		if p == nil || len(p.Status.ContainerStatuses) == 0 {
			return false
		}
		w := p.Status.ContainerStatuses[0].State.Waiting
		return w != nil && w.Reason == reason && strings.Contains(w.Message, message)
	}
}

func (b *bed) env(pod, container string) map[string]string {
	b.t.Helper()
	p := b.api.await(b.t, pod, "running", running)
	out := map[string]string{}
	cfg, _ := b.rt.Config(strings.TrimPrefix(podspec.ContainerStatus(&p.Status, container).ContainerID, cri.ContainerIDPrefix))
	for _, e := range cfg.Env {
		out[e.Name] = e.Value
	}
	return out
}

func TestEnvWaitsForWhatIsMissing(t *testing.T) {
	b := newBed(t)
	b.start()
	b.create(plantest.Pod("web", func(p *corev1.Pod) {
		optional := fromMap("never", "k")
		optional.ConfigMapKeyRef.Optional = new(true)
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: fromMap("m", "k")}, {Name: "B", Value: "[$(A)]"}, {Name: "C", ValueFrom: optional}}
		p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{Prefix: "P_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
	}))
	b.api.await(t, "web", "held for the secret", waitsFor("CreateContainerConfigError", `secret "s" not found`))
	b.put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"x": []byte("1"), "y.z": []byte("2")}})
	b.api.await(t, "web", "held for the map", waitsFor("CreateContainerConfigError", `configmap "m" not found`))
	b.put(theMap("m"))
	b.api.await(t, "web", "held for the key", waitsFor("CreateContainerConfigError", "couldn't find key k in ConfigMap default/m"))
	b.put(theMap("m", "k", "v"))
	env := b.env("web", "web")
	if _, there := env["C"]; env["A"] != "v" || env["B"] != "[v]" || env["P_x"] != "1" || env["P_y.z"] != "2" || there {
		t.Errorf("%v", env)
	}
	b.delete("web")
	b.api.await(t, "web", "gone", goneNow)
	b.nothingLeft()
	eventually(t, "the watches have ended", func() error {
		if n := b.api.node.open(api.ConfigMaps) + b.api.node.open(api.Secrets); n != 0 {
			return unexpected(fmt.Sprintf("%d watches are left", n))
		}
		return nil
	})
}

func TestVolumesFollowTheirObjects(t *testing.T) {
	b := newBed(t)
	b.start()
	for _, name := range []string{"one", "two"} {
		b.create(plantest.Pod(name, func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{mapVolume("m"), {Name: "me", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
				Items: []corev1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}}}}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		}))
	}
	if msg := b.api.awaitEvent(t, "one", "FailedMount"); !strings.Contains(msg, `configmap "m" not found`) {
		t.Error(msg)
	}
	b.put(theMap("m", "k", "old"))
	p := b.api.await(t, "one", "running", running)
	b.api.await(t, "two", "running", running)
	if n := b.api.node.open(api.ConfigMaps); n != 1 {
		t.Errorf("%d watches for one map", n)
	}
	dir := filepath.Join(b.k.volumes.PodDir(string(p.UID)), "volumes")
	reads := func(file, want string) {
		t.Helper()
		eventually(t, file+" is "+want, func() error {
			data, err := os.ReadFile(filepath.Join(dir, file))
			if err == nil && string(data) != want {
				return unexpected(data)
			}
			return err
		})
	}
	reads("configmap/v/k", "old")
	b.put(theMap("m", "k", "new"))
	reads("configmap/v/k", "new")
	b.api.node.breakWatches() // changes meanwhile are seen when they are open again
	b.put(theMap("m", "k", "newer"))
	reads("configmap/v/k", "newer")
	if _, err := b.api.Patch(t.Context(), podKey("one"), client.Patch{Type: types.MergePatchType, Data: []byte(`{"metadata":{"labels":{"a":"b"}}}`)}, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	reads("downward-api/me/labels", `a="b"`)
	b.stop()
	b.put(theMap("m", "k", "newest"))
	b.start()
	reads("configmap/v/k", "newest")
	for _, name := range []string{"one", "two"} {
		b.delete(name)
		b.api.await(t, name, "gone", goneNow)
	}
	b.nothingLeft()
}

func TestImmutableIsReadOnce(t *testing.T) {
	b := newBed(t)
	b.start()
	m := theMap("m", "k", "v")
	m.Immutable = new(true)
	b.put(m)
	b.create(plantest.Pod("web", func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{mapVolume("m")} }))
	b.api.await(t, "web", "running", running)
	eventually(t, "the watch has ended", func() error {
		if b.api.node.open(api.ConfigMaps) > 0 {
			return os.ErrExist
		}
		return nil
	})
}
