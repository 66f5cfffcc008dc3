package proxy

import (
	"net/http"
	"net/url"
	"strings"
)

// links changes the addresses in a pod's answers so that the client reaches them through the API.
type links struct {
	prefix  string // of the path, up to the part that the pod gets; escaped
	backend string // the pod's host in the forwarded request
	host    string // the API's host in the client's request
}

// rewriteResponse adapts an answer: links to the pod itself go through the API again, and the CORS headers are
// removed, so that a pod cannot let other sites' scripts read the API's content.
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

// through returns the link as the client must follow it. Links to other places, and relative ones, stay unchanged.
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
