package routes

import (
	"net/url"
	"strings"
)

// Canonical reads the escaped path of a request. escaped is without . and .. segments: what a backend may see, so that no
// request leaves the prefix that it was matched by. decoded is what routes are compared with; a slash that was escaped stays
// so. False: the path is malformed, or leaves the root.
func Canonical(path string) (escaped, decoded string, ok bool) {
	if path == "" || path[0] != '/' {
		return "", "", false
	}
	if !strings.Contains(path, "/.") && strings.IndexByte(path, '%') < 0 {
		return path, path, true
	}
	var raw, plain []string
	parts := strings.Split(path[1:], "/")
	for i, p := range parts {
		d, err := url.PathUnescape(p)
		if err != nil || strings.IndexByte(d, 0) >= 0 {
			return "", "", false
		}
		last := i == len(parts)-1
		switch d {
		case ".":
		case "..":
			if len(raw) == 0 {
				return "", "", false
			}
			raw, plain = raw[:len(raw)-1], plain[:len(plain)-1]
		default:
			raw, plain = append(raw, p), append(plain, strings.ReplaceAll(d, "/", "%2F"))
			continue
		}
		if last { // /a/. is /a/
			raw, plain = append(raw, ""), append(plain, "")
		}
	}
	return "/" + strings.Join(raw, "/"), "/" + strings.Join(plain, "/"), true
}

// Hostname is the name of a Host header: without port and final dot, in lower case.
func Hostname(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i:], ']') < 0 {
		host = host[:i]
	}
	host = strings.TrimSuffix(host, ".")
	for i := range len(host) {
		if c := host[i]; 'A' <= c && c <= 'Z' {
			return strings.ToLower(host)
		}
	}
	return host
}
