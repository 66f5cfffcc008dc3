package proxy

import (
	"net/http"
	"net/url"
	"strings"
)

// links are the addresses that a pod names in its answers, as the client has to follow them: through the API.
type links struct {
	prefix  string // of the path, up to what the pod sees of it; escaped
	backend string // what the pod is called here
	host    string // and what the client calls the API
}

// rewriteResponse makes an answer one of the API: links to the pod itself lead through the API again, and scripts of other
// sites get no leave from a pod to read what is the API's.
func (p *links) rewriteResponse(resp *http.Response) error {
	for _, name := range []string{"Access-Control-Allow-Credentials", "Access-Control-Allow-Headers",
		"Access-Control-Allow-Methods", "Access-Control-Allow-Origin"} {
		resp.Header.Del(name)
	}
	if at := resp.Header.Get("Location"); at != "" {
		resp.Header.Set("Location", p.through(at))
	}
	return p.page(resp)
}

// through is a link as the client has to follow it. Those to other places, and relative ones, stay as they are.
func (p *links) through(link string) string {
	u, err := url.Parse(link)
	if err != nil || u.Opaque != "" || u.Host != "" && u.Host != p.backend && u.Host != p.host || !strings.HasPrefix(u.Path, "/") {
		return link
	}
	path := u.EscapedPath()
	if path != p.prefix && !strings.HasPrefix(path, p.prefix+"/") {
		path = p.prefix + path
	}
	if u.RawQuery != "" || u.ForceQuery {
		path += "?" + u.RawQuery
	}
	if u.Fragment != "" {
		path += "#" + u.EscapedFragment()
	}
	return path
}
