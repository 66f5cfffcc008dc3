package requestinfo

import (
	"testing"
)

func TestPaths(t *testing.T) {
	for _, x := range []struct {
		path string
		want Info
		none bool
	}{
		{path: "/pods", want: Info{Resource: "pods"}},
		{path: "/pods/", want: Info{Resource: "pods", Rest: "/"}},
		{path: "/watch/pods/a", want: Info{Resource: "pods", Name: "a", Watch: true}},
		{path: "/namespaces/a/pods/b/log", want: Info{Resource: "pods", Namespace: "a", Name: "b", Subresource: "log"}},
		{path: "/namespaces/a/pods/*/http_requests", want: Info{Resource: "pods", Namespace: "a", Name: "*", Subresource: "http_requests"}},
		{path: "/namespaces/a/status", want: Info{Resource: "namespaces", Name: "a", Subresource: "status"}},
		{path: "/namespaces/a", want: Info{Resource: "namespaces", Name: "a"}},
		{path: "/namespaces/a/services/b/proxy/c%2Fd/e", want: Info{Resource: "services", Namespace: "a", Name: "b", Subresource: "proxy", Rest: "/c%2Fd/e"}},
		{path: "/pods/..%2fsecrets", want: Info{Resource: "pods", Name: "../secrets"}},
		{path: "/namespaces//pods", none: true},
		{path: "/pods/%zz", none: true},
	} {
		got, err := parse(escaped(x.path))
		if (err != nil) != x.none || err == nil && got != x.want {
			t.Errorf("%s: %+v, %v", x.path, got, err)
		}
	}
}

func TestVerbs(t *testing.T) {
	for _, x := range []struct {
		of     Info
		method string
		watch  bool
		want   string
	}{
		{Info{Name: "a"}, "GET", false, "get"}, {Info{}, "GET", false, "list"}, {Info{Name: "a"}, "HEAD", false, "get"},
		{Info{Name: "a"}, "GET", true, "watch"}, {Info{Watch: true}, "GET", false, "watch"}, {Info{}, "POST", true, "create"},
		{Info{Name: "a"}, "PUT", false, "update"}, {Info{Name: "a"}, "PATCH", false, "patch"},
		{Info{Name: "a"}, "DELETE", false, "delete"}, {Info{}, "DELETE", false, "deletecollection"}, {Info{}, "BREW", false, ""},
	} {
		if got := x.of.Verb(x.method, x.watch); got != x.want {
			t.Errorf("%s %+v: %q", x.method, x.of, got)
		}
	}
}
