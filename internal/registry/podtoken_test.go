package registry_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/registry/strategy"
	"minik8s/internal/store/memory"
)

// Who gets a token by itself, as upstream's conformance tests "should mount an API token into pods" and "should allow
// opting out of API token automount" have it.
func TestMountsTokens(t *testing.T) {
	reg, stop := registrytest.StartWith(t, memory.New(), strategy.Settings{Tokens: registrytest.Signer(t), MountTokens: true})
	t.Cleanup(stop)
	admin := local.New(reg, registry.System)
	for name, mounts := range map[string]*bool{"default": nil, "mount": new(true), "nomount": new(false)} {
		if _, err := admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, AutomountServiceAccountToken: mounts}, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const at = "/var/run/secrets/kubernetes.io/serviceaccount"
	for _, x := range []struct {
		account string
		pod     *bool
		want    bool
	}{
		{"default", nil, true}, {"default", new(true), true}, {"default", new(false), false},
		{"mount", nil, true}, {"mount", new(true), true}, {"mount", new(false), false},
		{"nomount", nil, false}, {"nomount", new(true), true}, {"nomount", new(false), false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "p-"}, Spec: corev1.PodSpec{ServiceAccountName: x.account,
			AutomountServiceAccountToken: x.pod, InitContainers: []corev1.Container{{Name: "i", Image: "i"}},
			Containers: []corev1.Container{{Name: "c", Image: "i"}, {Name: "own", Image: "i", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: at}}}},
			Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}}}
		obj, err := admin.Create(t.Context(), pod, client.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		spec := obj.(*corev1.Pod).Spec
		has := len(spec.Volumes) == 2 && strings.HasPrefix(spec.Volumes[1].Name, "kube-api-access-") && spec.Volumes[1].Projected != nil
		for i, list := range [][]corev1.Container{spec.InitContainers, spec.Containers[:1]} {
			mounts := list[0].VolumeMounts
			if (len(mounts) == 1) != x.want || x.want && (mounts[0].MountPath != at || !mounts[0].ReadOnly || mounts[0].Name != spec.Volumes[1].Name) {
				t.Errorf("%+v: container %d has %+v", x, i, mounts)
			}
		}
		if has != x.want || len(spec.Containers[1].VolumeMounts) != 1 {
			t.Errorf("%+v: %+v", x, spec)
		}
	}
}
