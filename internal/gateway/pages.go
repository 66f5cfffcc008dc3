package gateway

import (
	"fmt"
	"html"
	"net/http"
	"net/netip"
	"strings"

	"minik8s/internal/gateway/routes"
)

// page is what the gateway says itself.
type page struct {
	status int
	lines  []string
	list   []string
}

// listed is how many routes a page shows.
const listed = 20

// noRoute is for a request that no route is for.
func noRoute(t *routes.Table, at netip.Addr, host, path string) page {
	owners, list := t.At(at, host)
	name := host
	if name == "" {
		name = "(no host)"
	}
	if len(owners) == 0 {
		return page{http.StatusNotFound, []string{fmt.Sprintf("No object has a route for the host %s here.", clip(name))}, nil}
	}
	var names []string
	for _, o := range owners {
		names = append(names, o.String())
	}
	p := page{http.StatusNotFound, []string{fmt.Sprintf("%s has no such path: %s", clip(name), clip(path)), fmt.Sprintf("%s has these:", clip(strings.Join(names, ", ")))}, nil}
	for i, r := range list {
		if i == listed {
			p.list = append(p.list, fmt.Sprintf("and %d more", len(list)-listed))
			break
		}
		line := r.Path
		if r.Match == routes.Exact {
			line += " (exactly)"
		}
		p.list = append(p.list, line)
	}
	return p
}

func clip(s string) string {
	if len(s) > 200 {
		s = s[:200] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}

func noEndpoint(r *routes.Route, why string) page {
	return page{http.StatusServiceUnavailable, []string{why, fmt.Sprintf("%s%s is a path of %s.", r.Host, r.Path, r.Owner)}, nil}
}

func allFailed(r *routes.Route, slow bool) page {
	what := "Its address"
	if r.Backend.Service != "" {
		what = "Service " + r.Backend.Namespace + "/" + r.Backend.Service
	}
	p := page{http.StatusBadGateway, []string{what + " has endpoints, but none that was asked has answered.", fmt.Sprintf("%s%s is a path of %s.", r.Host, r.Path, r.Owner)}, nil}
	if slow {
		p.status, p.lines[0] = http.StatusGatewayTimeout, what+" has endpoints, but they could not be reached in time."
	}
	return p
}

// body is the page, as HTML for who prefers that.
func (p page) body(accept string) (kind, body string) {
	title := fmt.Sprintf("%d %s", p.status, http.StatusText(p.status))
	var b strings.Builder
	if strings.Contains(accept, "text/html") {
		fmt.Fprintf(&b, "<!DOCTYPE html>\n<title>%s</title>\n<h1>%s</h1>\n", title, title)
		for _, l := range p.lines {
			fmt.Fprintf(&b, "<p>%s</p>\n", html.EscapeString(l))
		}
		if len(p.list) > 0 {
			b.WriteString("<ul>\n")
			for _, l := range p.list {
				fmt.Fprintf(&b, "<li>%s</li>\n", html.EscapeString(l))
			}
			b.WriteString("</ul>\n")
		}
		return "text/html; charset=utf-8", b.String()
	}
	b.WriteString(title + "\n")
	for _, l := range p.lines {
		b.WriteString(l + "\n")
	}
	for _, l := range p.list {
		b.WriteString("  " + l + "\n")
	}
	return "text/plain; charset=utf-8", b.String()
}

// write answers a request with the page.
func (p page) write(w http.ResponseWriter, r *http.Request) {
	kind, body := p.body(r.Header.Get("Accept"))
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", fmt.Sprint(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(body))
	}
}
