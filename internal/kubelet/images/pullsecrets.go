package images

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/imageaccess"
	"minik8s/internal/kubelet/cri"
)

// pullSecrets reads the pod's imagePullSecrets, which include those of its service account. A missing one is reported
// in an Event and left out, because the image may be public.
func (m *Manager) pullSecrets(ctx context.Context, pod *corev1.Pod, event EventFunc) []*corev1.Secret {
	var out []*corev1.Secret
	for _, ref := range pod.Spec.ImagePullSecrets {
		s, err := client.Get[*corev1.Secret](ctx, m.client, client.Key{Kind: api.Secrets, Namespace: pod.Namespace, Name: ref.Name})
		if err != nil {
			event(corev1.EventTypeWarning, "FailedToRetrieveImagePullSecret",
				"Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", ref.Name)
			m.log.Info("an image pull secret cannot be read", "pod", pod.Namespace+"/"+pod.Name, "secret", ref.Name, "error", err)
			continue
		}
		out = append(out, s)
	}
	return out
}

// logins are the entries of a secret, by the registry they are for.
func logins(s *corev1.Secret) (imageaccess.Logins, error) {
	switch s.Type {
	case corev1.SecretTypeDockerConfigJson:
		return imageaccess.Parse(s.Data[corev1.DockerConfigJsonKey])
	case corev1.SecretTypeDockercfg:
		return imageaccess.ParseOld(s.Data[corev1.DockerConfigKey])
	}
	return nil, fmt.Errorf("a secret of type %q holds no logins", s.Type)
}

// authsFor are the logins that fit an image: first those of the secrets, the most specific before the others, and then the machine's
// own. Secrets that hold no logins are left out. It is pure, and Kubernetes' rule.
func authsFor(image string, secrets []*corev1.Secret, own imageaccess.Logins) []cri.Auth {
	var all []imageaccess.Logins
	for _, s := range secrets {
		if list, err := logins(s); err == nil {
			all = append(all, list)
		}
	}
	var out []cri.Auth
	for _, l := range append(imageaccess.For(image, all...), imageaccess.For(image, own)...) {
		if auth := cri.Auth(l); !slices.Contains(out, auth) {
			out = append(out, auth)
		}
	}
	return out
}

// ownLogins are those of this machine's file. One that cannot be read is reported, and pods' own logins count still.
func (m *Manager) ownLogins() imageaccess.Logins {
	own, err := imageaccess.File(m.authFile)
	if err != nil {
		m.log.Warn("images are pulled without this machine's logins (registry-authfile)", "error", err)
	}
	return own
}
