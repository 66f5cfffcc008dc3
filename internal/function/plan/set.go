package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
)

// VersionLabel is on the pods of a function, and tells those of its present specification from older ones.
const VersionLabel = "minik8s.io/function-version"

// NameAnnotation is on a function's ReplicaSets and pods, and has the function's name as people write it.
const NameAnnotation = "minik8s.io/function-name"

// Set is the ReplicaSet of a function's instances with this image; owner is the function. Another specification has another name.
func Set(f *minik8s.Function, image string, owner metav1.OwnerReference) *appsv1.ReplicaSet {
	name := Derived(f.Name)
	template := template(f, image)
	version := hash(template)
	own := map[string]string{minik8s.FunctionLabel: name, VersionLabel: version}
	template.Labels, template.Annotations = maps.Clone(own), map[string]string{NameAnnotation: f.Name}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name + "-" + version, Labels: maps.Clone(own),
			Annotations: map[string]string{NameAnnotation: f.Name}, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: own}, Template: template},
	}
}

func template(f *minik8s.Function, image string) corev1.PodTemplateSpec {
	s := &f.Spec
	port := int32(minik8s.FunctionPort)
	if s.Image != "" {
		port = s.Port
	}
	c := corev1.Container{Name: "function", Image: image, Ports: []corev1.ContainerPort{{ContainerPort: port}},
		Resources: resourcesOf(s), ImagePullPolicy: corev1.PullIfNotPresent}
	for i := range s.Env {
		c.Env = append(c.Env, *s.Env[i].DeepCopy())
	}
	if s.Image == "" {
		c.Env = append(c.Env, corev1.EnvVar{Name: "PORT", Value: strconv.Itoa(int(port))}, corev1.EnvVar{Name: "MINIK8S_VERSION", Value: s.Version})
	} else {
		c.Env = append(c.Env, corev1.EnvVar{Name: "PORT", Value: strconv.Itoa(int(port))})
	}
	grace := int64(s.TimeoutSeconds) // a call that it has ends as if nobody wanted the instance to go
	none := false
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{c}, TerminationGracePeriodSeconds: &grace,
		AutomountServiceAccountToken: &none, EnableServiceLinks: &none}}
}

// What an instance of a function that says nothing of memory may have, and is sure to have: one function's mistake is not the machine's.
var (
	memoryLimit   = resource.MustParse("256Mi")
	memoryRequest = resource.MustParse("16Mi") // without an explicit request Kubernetes takes the limit as the request
)

// resourcesOf are those of an instance.
func resourcesOf(s *minik8s.FunctionSpec) corev1.ResourceRequirements {
	out := *s.Resources.DeepCopy()
	limit, limited := out.Limits[corev1.ResourceMemory]
	request, requested := out.Requests[corev1.ResourceMemory]
	if !limited {
		limit = memoryLimit
		if requested && request.Cmp(limit) > 0 {
			limit = request
		}
	}
	if !requested {
		request = memoryRequest
		if limit.Cmp(request) < 0 {
			request = limit
		}
	}
	set := func(list *corev1.ResourceList, q resource.Quantity) {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[corev1.ResourceMemory] = q.DeepCopy()
	}
	set(&out.Limits, limit)
	set(&out.Requests, request)
	return out
}

// hash tells templates apart.
func hash(t corev1.PodTemplateSpec) string {
	raw, err := json.Marshal(t)
	if err != nil {
		panic(err) // the type is known
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:5])
}
