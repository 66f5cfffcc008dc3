package node

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// namespaces have objects of the same names.
var namespaces = []string{"default", "kube-node-lease"}

// named is one of the names that the Secrets, ConfigMaps and service accounts of a namespace have.
func named(kind string, i int) string { return fmt.Sprintf("%s%d", kind, i) }

// names is how many there are of each.
const names = 8

// uid stands for the UID that an object has where the requests are sent: each server gives its own.
func uid(kind, namespace, name string) types.UID {
	return types.UID("$uid:" + kind + "/" + namespace + "/" + name + "$")
}

// cluster is what there is while the requests are judged.
type cluster struct {
	Nodes []*corev1.Node `json:"nodes"`
	Pods  []*corev1.Pod  `json:"pods"`
}

// makeCluster is two nodes, and pods on them, on a node that is not there, and on none.
func makeCluster(rng *rand.Rand) cluster {
	var c cluster
	for _, name := range []string{"n1", "n2"} {
		c.Nodes = append(c.Nodes, &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid("nodes", "", name), Labels: map[string]string{
				"kubernetes.io/hostname": name, "node-restriction.kubernetes.io/room": "a", "node-role.kubernetes.io/worker": "", "example.com/disk": "ssd"}},
			Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "example.com/only", Value: "x", Effect: corev1.TaintEffectNoSchedule}}}})
	}
	for i := range 2 * ways {
		p := pod(rng, namespaces[i%2], fmt.Sprintf("p%d", i), []string{"n1", "n2", "", "n2", "n1", "n3", "n1"}[i/2%7])
		refer(rng, p, i%ways, func(string) string { return own(p.Name) })
		c.Pods = append(c.Pods, p)
	}
	for i, audience := range []string{"", "vault"} {
		p := pod(rng, "default", fmt.Sprintf("t%d", i), "n1")
		p.Spec.Volumes = []corev1.Volume{{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{downward, {ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: audience, ExpirationSeconds: new(int64(3600))}}}}}}}
		c.Pods = append(c.Pods, p)
	}
	// What a mirror pod names is not the node's to read.
	mirror := pod(rng, "default", "mirror", "n1")
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	mirror.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: own("mirror")}}}}
	mirror.Spec.ServiceAccountName = named("a", names-1)
	c.Pods = append(c.Pods, mirror)
	return c
}

// pod refers to a few objects, each in one of the ways in which a pod can.
func pod(rng *rand.Rand, namespace, name, node string) *corev1.Pod {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid("pods", namespace, name), Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{NodeName: node, ServiceAccountName: named("a", rng.IntN(names-1)), AutomountServiceAccountToken: new(false),
			InitContainers: []corev1.Container{{Name: "init", Image: "i"}}, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	for range rng.IntN(3) {
		refer(rng, p, rng.IntN(ways), func(kind string) string { return named(kind, rng.IntN(names)) })
	}
	return p
}

// own is the name of an object to which only one pod refers.
func own(pod string) string { return "of-" + pod }

// ways is in how many ways a pod can refer to something: six, and four in each of three sorts of containers.
const ways = 6 + 4*3

// downward is a part of a volume that refers to nothing.
var downward = corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{
	Items: []corev1.DownwardAPIVolumeFile{{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}}

// refer adds a reference to a pod.
func refer(rng *rand.Rand, p *corev1.Pod, way int, name func(kind string) string) {
	spec := &p.Spec
	object := func(kind string) corev1.LocalObjectReference {
		return corev1.LocalObjectReference{Name: name(kind)}
	}
	volume := func(source corev1.VolumeSource) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", len(spec.Volumes)), VolumeSource: source})
	}
	projected := func(source corev1.VolumeProjection) {
		volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{downward, source}}})
	}
	ephemeral := &corev1.EphemeralContainerCommon{Name: "e", Image: "i"}
	container := []*corev1.Container{&spec.InitContainers[0], &spec.Containers[0], (*corev1.Container)(ephemeral)}[way%3]
	if len(spec.EphemeralContainers) > 0 && container.Name == "e" {
		container = &spec.Containers[0]
	}
	if way >= 6 {
		way = 6 + (way-6)/3
	}
	switch way {
	case 0:
		volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: object("s").Name}})
	case 1:
		volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: object("c")}})
	case 2:
		projected(corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: object("s")}})
	case 3:
		projected(corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: object("c")}})
	case 4:
		projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Path: "token", ExpirationSeconds: new(int64(3600)), Audience: []string{"", "vault", "example.com"}[rng.IntN(3)]}})
	case 5:
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, object("s"))
	case 6:
		container.EnvFrom = append(container.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: object("s")}})
	case 7:
		container.EnvFrom = append(container.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: object("c")}})
	case 8:
		container.Env = append(container.Env, corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: object("s"), Key: "k"}}})
	case 9:
		container.Env = append(container.Env, corev1.EnvVar{Name: "B", ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: object("c"), Key: "k", Optional: new(true)}}})
	}
	if container.Name == "e" && (len(container.Env) > 0 || len(container.EnvFrom) > 0) {
		spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: *ephemeral}}
	}
}
