package images

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
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

// login is one registry's entry of a docker configuration.
type login struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"` // base64 of username:password
	RegistryToken string `json:"registrytoken"`
}

// logins are the entries of a secret, by the registry they are for.
func logins(s *corev1.Secret) (map[string]login, error) {
	switch s.Type {
	case corev1.SecretTypeDockerConfigJson:
		var file struct {
			Auths map[string]login `json:"auths"`
		}
		err := json.Unmarshal(s.Data[corev1.DockerConfigJsonKey], &file)
		return file.Auths, err
	case corev1.SecretTypeDockercfg:
		var file map[string]login
		err := json.Unmarshal(s.Data[corev1.DockerConfigKey], &file)
		return file, err
	}
	return nil, fmt.Errorf("a secret of type %q holds no logins", s.Type)
}

// authsFor are the logins of the secrets that fit an image, the most specific first. Secrets that hold no logins
// are left out. It is pure, and Kubernetes' rule (pkg/credentialprovider/keyring.go).
func authsFor(image string, secrets []*corev1.Secret) []cri.Auth {
	type candidate struct {
		place string
		auth  cri.Auth
	}
	var fit []candidate
	at := repositoryOf(image)
	for _, s := range secrets {
		list, err := logins(s)
		if err != nil {
			continue
		}
		for registry, l := range list {
			auth, ok := l.auth()
			if place := configuredRepository(registry); ok && matches(place, at) {
				fit = append(fit, candidate{place, auth})
			}
		}
	}
	slices.SortStableFunc(fit, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(len(b.place), len(a.place)), strings.Compare(b.place, a.place))
	})
	var out []cri.Auth
	for _, c := range fit {
		if !slices.Contains(out, c.auth) {
			out = append(out, c.auth)
		}
	}
	return out
}

func (l login) auth() (cri.Auth, bool) {
	a := cri.Auth{Username: l.Username, Password: l.Password, Token: l.RegistryToken}
	if l.Auth != "" {
		data, err := base64.StdEncoding.DecodeString(l.Auth)
		if err != nil {
			data, err = base64.RawStdEncoding.DecodeString(l.Auth)
		}
		name, password, ok := strings.Cut(string(data), ":")
		if err != nil || !ok {
			return a, false
		}
		a.Username, a.Password = name, strings.TrimRight(password, "\x00")
	}
	return a, a != (cri.Auth{})
}

// docker is Docker Hub's name in docker configurations, the registry of images that name none.
const docker = "index.docker.io"

// repositoryOf is the registry and path of an image: "index.docker.io/library/nginx".
func repositoryOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	host, rest, ok := strings.Cut(name, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" {
		if !ok {
			name = "library/" + name
		}
		return docker + "/" + name
	}
	if host == "docker.io" {
		if !strings.Contains(rest, "/") {
			rest = "library/" + rest
		}
		return docker + "/" + rest
	}
	return name
}

// configuredRepository is the registry and path of an entry of a configuration, without a scheme and without the
// protocol version that docker used to write.
func configuredRepository(registry string) string {
	if _, rest, ok := strings.Cut(registry, "://"); ok {
		registry = rest
	}
	registry = strings.TrimSuffix(registry, "/")
	for _, version := range []string{"/v1", "/v2"} {
		registry = strings.TrimSuffix(registry, version)
	}
	host, rest, _ := strings.Cut(registry, "/")
	if host == "docker.io" || host == "registry-1.docker.io" {
		host = docker
	}
	return strings.TrimSuffix(host+"/"+rest, "/")
}

// matches reports whether an entry for place applies to the image at: its host matches part by part, where * stands
// for one part or some of it, and its path is a prefix of the image's.
func matches(place, at string) bool {
	host, dir, _ := strings.Cut(place, "/")
	imageHost, imagePath, _ := strings.Cut(at, "/")
	name, port, _ := strings.Cut(host, ":")
	imageName, imagePort, _ := strings.Cut(imageHost, ":")
	want, have := strings.Split(name, "."), strings.Split(imageName, ".")
	if port != imagePort || len(want) != len(have) {
		return false
	}
	for i := range want {
		if ok, err := path.Match(want[i], have[i]); err != nil || !ok {
			return false
		}
	}
	return dir == "" || imagePath == dir || strings.HasPrefix(imagePath, dir+"/")
}
