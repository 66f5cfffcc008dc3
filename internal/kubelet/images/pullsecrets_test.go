package images

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/imageaccess"
)

func dockerSecret(name string, logins ...string) *corev1.Secret {
	var entries []string
	for i := 0; i < len(logins); i += 2 {
		entries = append(entries, fmt.Sprintf(`%q: {"auth": %q}`, logins[i], base64.StdEncoding.EncodeToString([]byte(logins[i+1]+":pw"))))
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths": {` + strings.Join(entries, ",") + `}}`)}}
}

func TestAuthsFor(t *testing.T) {
	secrets := []*corev1.Secret{
		dockerSecret("a", "https://index.docker.io/v1/", "hub", "reg.example.com", "all", "reg.example.com/team", "team", "*.io", "star"),
		{Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte(`{"10.0.0.1:5000": {"username": "old", "password": "x"}}`)}},
		{Type: corev1.SecretTypeOpaque}, {Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("{")}},
	}
	for image, want := range map[string]string{
		"nginx": "hub", "me/app:1": "hub", "docker.io/nginx": "hub", "reg.example.com/x": "all", "reg.example.com/team/app:v1": "team all own",
		"reg.example.com/teamwork": "all", "quay.io/a/b@sha256:0": "star", "a.quay.io/b": "node", "10.0.0.1:5000/x": "old", "10.0.0.1/x": "",
	} {
		var names []string
		for _, a := range authsFor(image, secrets, imageaccess.Logins{"reg.example.com/team/app": {Username: "own"}, "a.quay.io": {Username: "node"}}) {
			names = append(names, a.Username)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}
