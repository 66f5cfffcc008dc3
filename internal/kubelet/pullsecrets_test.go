package kubelet

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan/plantest"
)

// dockerSecret has a login per registry: registry, name, registry, name.
func dockerSecret(name string, logins ...string) *corev1.Secret {
	var entries []string
	for i := 0; i < len(logins); i += 2 {
		entries = append(entries, fmt.Sprintf(`%q: {"username": %q, "password": "pw"}`, logins[i], logins[i+1]))
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths": {` + strings.Join(entries, ",") + `}}`)}}
}

func TestImagesArePulledWithTheLogins(t *testing.T) {
	b := newBed(t)
	var tried []string
	b.rt.Hooks.Login = func(auth *cri.Auth) error {
		if auth == nil {
			tried = append(tried, "nobody")
			return cri.ErrImageUnauthorized
		}
		tried = append(tried, auth.Username)
		if auth.Username != "good" {
			return cri.ErrImageUnauthorized
		}
		return nil
	}
	b.start()
	b.put(dockerSecret("s", "reg.example.com/a", "bad", "reg.example.com", "good"))
	b.create(plantest.Pod("web", func(p *corev1.Pod) {
		p.Spec.Containers[0].Image = "reg.example.com/a/b:1"
		p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "none"}, {Name: "s"}}
	}))
	b.api.await(t, "web", "running", running)
	b.api.awaitEvent(t, "web", "FailedToRetrieveImagePullSecret")
	if got := strings.Join(tried, " "); got != "bad good" {
		t.Error(got)
	}
}
