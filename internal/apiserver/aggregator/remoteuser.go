package aggregator

import (
	"fmt"
	"net/http"
	"strings"

	"minik8s/internal/registry"
)

// The headers by which the front proxy tells an extension API server whom a request is from: Kubernetes' own, and those
// that the ConfigMap extension-apiserver-authentication names.
const (
	UserHeader  = "X-Remote-User"
	UIDHeader   = "X-Remote-Uid"
	GroupHeader = "X-Remote-Group"
	ExtraPrefix = "X-Remote-Extra-"
)

// FrontProxyName is the common name of the front proxy's certificate: no other one is believed.
const FrontProxyName = "front-proxy-client"

// setUser makes a header say whom its request is from, and nobody else.
func setUser(h http.Header, u registry.User) {
	for name := range h {
		if isUserHeader(name) {
			delete(h, name)
		}
	}
	h.Set(UserHeader, u.Name)
	if u.UID != "" {
		h.Set(UIDHeader, u.UID)
	}
	for _, g := range u.Groups {
		h.Add(GroupHeader, g)
	}
	for key, values := range u.Extra {
		for _, v := range values {
			h.Add(ExtraPrefix+headerKey(key), v)
		}
	}
}

// isUserHeader reports whether a backend could take a header for one of the front proxy's. Some take an underscore for a
// dash.
func isUserHeader(name string) bool {
	name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	return name == UserHeader || name == UIDHeader || name == GroupHeader || strings.HasPrefix(name, ExtraPrefix)
}

// headerKey writes a key of User.Extra as a part of a header's name: whatever cannot stand there, and a percent sign, is
// written as in a URL.
func headerKey(key string) string {
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$&'*+-.^_`|~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
