package strategy

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
)

const (
	// tokenPath is where in-cluster clients look.
	tokenPath   = "/var/run/secrets/kubernetes.io/serviceaccount"
	tokenVolume = "kube-api-access-"
	// tokenSeconds is how long such a token lasts; the kubelet renews it long before.
	tokenSeconds = 3607
	rootCA       = "kube-root-ca.crt"
)

// wantsToken reports whether a pod gets a token by itself: the pod may say no, or else its account. account is nil if it
// does not exist yet.
func wantsToken(pod *corev1.Pod, account *corev1.ServiceAccount) bool {
	switch {
	case pod.Spec.ServiceAccountName == "":
		return false
	case pod.Spec.AutomountServiceAccountToken != nil:
		return *pod.Spec.AutomountServiceAccountToken
	case account != nil && account.AutomountServiceAccountToken != nil:
		return *account.AutomountServiceAccountToken
	}
	return true
}

// mountToken gives every container that has nothing there the account's token, the cluster's CA and the namespace. Names and
// contents are Kubernetes', but for the end of the volume's name: upstream's is by chance, ours follows from the account, so that
// the pods of one template have equal containers, which the cache holds once.
func mountToken(spec *corev1.PodSpec) {
	sum := fnv.New32a()
	sum.Write([]byte(spec.ServiceAccountName)) //nolint:errcheck // a hash takes everything
	name, exists := tokenVolume+rand.SafeEncodeString(fmt.Sprintf("%05d", sum.Sum32()%1e5)), false
	if i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, tokenVolume) }); i >= 0 {
		name, exists = spec.Volumes[i].Name, true
	}
	mounted := false
	mount := func(containers []corev1.Container) []corev1.Container {
		containers = slices.Clone(containers) // they are shared with other tries
		for i := range containers {
			c := &containers[i]
			if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == tokenPath }) {
				continue
			}
			c.VolumeMounts = append(slices.Clone(c.VolumeMounts), corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: tokenPath})
			mounted = true
		}
		return containers
	}
	spec.InitContainers, spec.Containers = mount(spec.InitContainers), mount(spec.Containers)
	if mounted && !exists {
		spec.Volumes = append(slices.Clone(spec.Volumes), corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: tokenSource()}})
	}
}

func tokenSource() *corev1.ProjectedVolumeSource {
	return &corev1.ProjectedVolumeSource{DefaultMode: new(corev1.ProjectedVolumeSourceDefaultMode), Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(tokenSeconds))}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: rootCA},
			Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
	}}
}
