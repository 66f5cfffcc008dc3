package routes

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	here  = netip.MustParseAddr("10.8.0.1")
	there = netip.MustParseAddr("10.8.0.2")
)

// route reads "host/path kind": the path begins at the first slash; a kind of = is exact; the backend is the text itself.
func route(text string, change ...func(*Route)) Route {
	where, kind, _ := strings.Cut(text, " ")
	i := strings.IndexByte(where, '/')
	r := Route{Host: where[:i], Path: where[i:], Backend: Backend{Namespace: "default", Service: text, Port: "80"}, Owner: Owner{Kind: "DNS", Namespace: "default", Name: "x"}}
	if kind == "=" {
		r.Match = Exact
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

func at(a netip.Addr) func(*Route) { return func(r *Route) { r.Address = a } }

func TestFind(t *testing.T) {
	table := New(Set{Routes: []Route{
		route("a.b/"), route("a.b/x"), route("a.b/x/y/"), route("a.b/x ="), route("a.b/z/ ="), route("a.b/Caf\u00e9"),
		route("*.b/"), route("*.b/deep"), route("*.a.b/"), route("only.c/p"), route("/other"),
		route("h/", at(here)), route("h/there", at(there)),
	}})
	for request, want := range map[string]string{
		"a.b/":          "a.b/",
		"a.b/q/r":       "a.b/",
		"a.b/x":         "a.b/x =",
		"a.b/x/":        "a.b/x",
		"a.b/xy":        "a.b/",
		"a.b/x/y":       "a.b/x/y/",
		"a.b/x/y/":      "a.b/x/y/",
		"a.b/x/y/z":     "a.b/x/y/",
		"a.b/x/yz":      "a.b/x",
		"a.b/x//y":      "a.b/x",
		"a.b/z":         "a.b/",
		"a.b/z/":        "a.b/z/ =",
		"a.b/caf\u00e9": "a.b/",
		"a.b/Caf\u00e9": "a.b/Caf\u00e9",
		"c.b/deep/er":   "*.b/deep",
		"c.a.b/deep":    "*.a.b/",
		"d.c.b/":        "",
		"b/":            "",
		".b/":           "",
		"only.c/":       "",
		"only.c/p":      "only.c/p",
		"only.c/other":  "/other",
		"/other":        "/other",
		"/others":       "",
		"h/":            "",
	} {
		i := strings.IndexByte(request, '/')
		got := ""
		if r := table.Find(netip.MustParseAddr("192.0.2.1"), request[:i], request[i:]); r != nil {
			got = r.Backend.Service
		}
		if got != want {
			t.Errorf("%s leads to %q, want %q", request, got, want)
		}
	}
	if r := table.Find(here, "h", "/there"); r == nil || r.Path != "/" {
		t.Errorf("at an address: %+v", r)
	}
	if r := table.Find(there, "h", "/"); r != nil {
		t.Errorf("a route of another address: %+v", r)
	}
	if r := table.Find(there, "a.b", "/"); r == nil {
		t.Error("a route for any address is not at one that has its own")
	}
	if r := table.Find(here, "h", "*"); r != nil {
		t.Errorf("not a path: %+v", r)
	}
	list, own := table.Addresses()
	if !slices.Equal(list, []netip.Addr{here, there}) || !own {
		t.Error(list, own)
	}
	if n := testing.AllocsPerRun(100, func() { table.Find(here, "c.b", "/deep/er/and/deeper") }); n > 0 {
		t.Errorf("a lookup allocates %v times", n)
	}
}

func TestOlderOwnerWins(t *testing.T) {
	young, old := route("a/x/", at(here)), route("a/x")
	young.Owner.Created, old.Owner.Created = time.Unix(2, 0), time.Unix(1, 0)
	young.Owner.Name, old.Owner.Name = "a", "b"
	for _, list := range [][]Route{{young, old}, {old, young}} {
		table := New(Set{Routes: list})
		if r := table.Find(here, "a", "/x"); r == nil || r.Owner != old.Owner {
			t.Errorf("the younger one has it: %+v", r)
		}
		if c := table.Conflicts(); len(c) != 1 || c[0].Route.Owner != young.Owner || c[0].Of.Owner != old.Owner {
			t.Errorf("conflicts: %+v", c)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct{ prefix, path, want string }{
		{"/", "/", "/"}, {"/", "/a", "/a"}, {"/world", "/world", "/"}, {"/world", "/world/", "/"}, {"/world/", "/world/a", "/a"},
		{"/new/world", "/new/world/a/b/", "/a/b/"}, {"/new/world", "/new/world", "/"}, {"/a b", "/a%20b/c%2Fd", "/c%2Fd"},
	} {
		r := New(Set{Routes: []Route{route("h"+c.prefix, func(r *Route) { r.Strip, r.Path = true, c.prefix })}}).Routes()[0]
		if prefix, got := r.Split(c.path); got != c.want || prefix+got != c.path && prefix+"/" != c.path+got {
			t.Errorf("%s without %s: %s, want %s", c.path, c.prefix, got, c.want)
		}
	}
	r := route("h/a")
	if prefix, rest := r.Split("/a/b"); prefix != "" || rest != "/a/b" {
		t.Error("a prefix is stripped that should stay")
	}
}

func TestCanonical(t *testing.T) {
	for _, c := range []struct {
		path, escaped, decoded string
		ok                     bool
	}{
		{"/", "/", "/", true}, {"/a/b", "/a/b", "/a/b", true}, {"/a//b", "/a//b", "/a//b", true},
		{"/a/../b", "/b", "/b", true}, {"/a/%2e%2E/b", "/b", "/b", true}, {"/a/./b/.", "/a/b/", "/a/b/", true}, {"/a/..", "/", "/", true},
		{"/a%2fb/%41", "/a%2fb/%41", "/a%2Fb/A", true}, {"/.a/b..", "/.a/b..", "/.a/b..", true},
		{"/..", "", "", false}, {"/a/../../b", "", "", false}, {"/%zz", "", "", false}, {"/%00", "", "", false}, {"", "", "", false}, {"*", "", "", false},
	} {
		escaped, decoded, ok := Canonical(c.path)
		if escaped != c.escaped || decoded != c.decoded || ok != c.ok {
			t.Errorf("%s: %q %q %v", c.path, escaped, decoded, ok)
		}
	}
}

func TestHostname(t *testing.T) {
	for in, want := range map[string]string{"a.b": "a.b", "A.b.:80": "a.b", "[::1]:80": "[::1]", "[::1]": "[::1]", "": "", ":80": ""} {
		if got := Hostname(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestCertificate(t *testing.T) {
	cert := func(host, secret string) Certificate {
		return Certificate{Host: host, Secret: SecretName{"default", secret}}
	}
	table := New(Set{Routes: []Route{route("h/", at(here))}, Certificates: []Certificate{cert("a.b", "exact"), cert("*.b", "wild"), {Address: here, Secret: SecretName{"default", "rest"}}}})
	for name, want := range map[string]string{"a.b": "exact", "c.b": "wild", "d.c.b": "", "b": ""} {
		if got, ok := table.Certificate(there, name); got.Name != want || ok != (want != "") {
			t.Errorf("%s: %v %v", name, got, ok)
		}
	}
	if got, _ := table.Certificate(here, "x"); got.Name != "rest" {
		t.Errorf("of any host: %v", got)
	}
}

// naive finds a route as the rules say it, with no index.
func naive(routes []*Route, address netip.Addr, name, path string) *Route {
	var best *Route
	rank := func(r *Route) (n [3]int) {
		switch {
		case r.Host == name && name != "":
			n[0] = 2
		case r.Host != "":
			n[0] = 1
		}
		if r.Match == Exact {
			n[1] = 1
		}
		n[2] = len(strings.TrimRight(r.Path, "/"))
		return n
	}
	for _, r := range routes {
		if r.Address.IsValid() && r.Address != address {
			continue
		}
		if rest, wild := strings.CutPrefix(r.Host, "*"); r.Host != "" && r.Host != name {
			label, ok := strings.CutSuffix(name, rest)
			if !wild || !ok || label == "" || strings.Contains(label, ".") {
				continue
			}
		}
		if p := strings.TrimRight(r.Path, "/"); r.Match == Exact && r.Path != path || r.Match == Prefix && path != p && !strings.HasPrefix(path, p+"/") {
			continue
		}
		if best == nil || slices.Compare(rankOf(rank(r)), rankOf(rank(best))) > 0 {
			best = r
		}
	}
	return best
}

func rankOf(n [3]int) []int { return n[:] }

func TestFindAgreesWithTheRules(t *testing.T) {
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
		path := func() (out string) {
			for range rnd.IntN(4) {
				out += "/" + pick("a", "b", "ab", "")
			}
			return out + pick("", "/")
		}
		host := func() string { return pick("", "*.b", "*.a.b", "b", "a.b", "c.a.b", "x.b") }
		address := func() netip.Addr { return []netip.Addr{{}, here, there}[rnd.IntN(3)] }
		var set Set
		for i := range rnd.IntN(25) {
			r := Route{Address: address(), Host: host(), Path: path(), Match: Match(rnd.IntN(2)), Owner: Owner{Kind: "DNS", Name: fmt.Sprint(i), Created: time.Unix(int64(rnd.IntN(3)), 0)}}
			if r.Path == "" {
				r.Path = "/"
			}
			set.Routes = append(set.Routes, r)
		}
		table := New(set)
		for range 50 {
			a, name, p := address(), strings.TrimPrefix(host(), "*."), "/"+strings.TrimPrefix(path(), "/")
			want, got := naive(table.Routes(), a, name, p), table.Find(a, name, p)
			if got != want {
				t.Fatalf("seed %d: %v %s%s leads to %+v, want %+v", seed, a, name, p, got, want)
			}
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{"/", "/a/../b", "/%2e%2e/", "/a%2F..%2fb", "//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		escaped, decoded, ok := Canonical(path)
		if !ok {
			return
		}
		for _, s := range strings.Split(decoded, "/") {
			if s == "." || s == ".." {
				t.Errorf("%q: %q still has dots", path, decoded)
			}
		}
		if strings.Count(escaped, "/") != strings.Count(decoded, "/") {
			t.Errorf("%q: %q and %q have not the same segments", path, escaped, decoded)
		}
		if again, d, ok := Canonical(escaped); !ok || again != escaped || d != decoded {
			t.Errorf("%q: %q is not canonical", path, escaped)
		}
	})
}
