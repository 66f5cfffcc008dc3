package imageaccess

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// Login is a user and password, or a token.
type Login struct{ Username, Password, Token string }

// Logins are those of one file or Secret, by the registry that they are for, and perhaps a path in it: as docker writes them.
type Logins map[string]Login

// entry is one registry's entry of a docker configuration.
type entry struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"` // base64 of username:password
	RegistryToken string `json:"registrytoken"`
}

// errForm hides what a JSON error says of the text, which may be a password.
var errForm = errors.New(`expected docker's config.json, as {"auths": {"registry.example.org": {"auth": "BASE64 OF USER:PASSWORD"}}}`)

// Parse reads docker's config.json. Entries that are no login are left out.
func Parse(data []byte) (Logins, error) {
	var file struct {
		Auths       map[string]entry  `json:"auths"`
		CredsStore  string            `json:"credsStore"`
		CredHelpers map[string]string `json:"credHelpers"`
	}
	if json.Unmarshal(data, &file) != nil {
		return nil, errForm
	}
	out := usable(file.Auths)
	if len(out) == 0 && (file.CredsStore != "" || len(file.CredHelpers) > 0) {
		return nil, errors.New("its logins are kept by another program (credsStore, credHelpers), which is not asked: they have to stand in auths")
	}
	return out, nil
}

// ParseOld reads docker's older .dockercfg.
func ParseOld(data []byte) (Logins, error) {
	var file map[string]entry
	if json.Unmarshal(data, &file) != nil {
		return nil, errors.New("expected docker's .dockercfg")
	}
	return usable(file), nil
}

// File reads a config.json. An empty path is no file, and has no logins.
func File(path string) (Logins, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

func usable(entries map[string]entry) Logins {
	out := Logins{}
	for registry, e := range entries {
		if l, ok := e.login(); ok {
			out[registry] = l
		}
	}
	return out
}

func (e entry) login() (Login, bool) {
	l := Login{Username: e.Username, Password: e.Password, Token: e.RegistryToken}
	if e.Auth != "" {
		data, err := base64.StdEncoding.DecodeString(e.Auth)
		if err != nil {
			data, err = base64.RawStdEncoding.DecodeString(e.Auth)
		}
		name, password, ok := strings.Cut(string(data), ":")
		if err != nil || !ok {
			return l, false
		}
		l.Username, l.Password = name, strings.TrimRight(password, "\x00")
	}
	return l, l != (Login{})
}

// For are the logins that fit an image, the most specific first.
func For(image string, all ...Logins) []Login {
	type candidate struct {
		place string
		login Login
	}
	var fit []candidate
	at := repositoryOf(image)
	for _, logins := range all {
		for registry, l := range logins {
			if place := configuredRepository(registry); matches(place, at) {
				fit = append(fit, candidate{place, l})
			}
		}
	}
	slices.SortStableFunc(fit, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(len(b.place), len(a.place)), strings.Compare(b.place, a.place))
	})
	var out []Login
	for _, c := range fit {
		if !slices.Contains(out, c.login) {
			out = append(out, c.login)
		}
	}
	return out
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
