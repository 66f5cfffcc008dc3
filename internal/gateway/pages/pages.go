// Package pages is what the gateway says itself, when a request leads nowhere: plain text, or HTML for who prefers that. It
// names objects and Services, and no address that is behind the gateway.
//
// Who calls it: package gateway and its package plain. Pure; nothing survives.
package pages

import (
	"fmt"
	"html"
	"net/http"
	"net/netip"
	"strings"

	"minik8s/internal/gateway/routes"
)

// Page is an answer.
type Page struct {
	Status int
	Lines  []string
	list   []string
}

// New makes a page.
func New(status int, lines ...string) Page { return Page{Status: status, Lines: lines} }

// listed is how many routes a page shows.
const listed = 20

// NoRoute is for a request that no route is for.
func NoRoute(t *routes.Table, at netip.Addr, host, path string) Page {
	owners, list := t.At(at, host)
	name := host
	if name == "" {
		name = "(no host)"
	}
	if len(owners) == 0 {
		return Page{http.StatusNotFound, []string{fmt.Sprintf("No object has a route for the host %s here.", clip(name))}, nil}
	}
	var names []string
	for _, o := range owners {
		names = append(names, o.String())
	}
	p := Page{http.StatusNotFound, []string{fmt.Sprintf("%s has no such path: %s", clip(name), clip(path)), fmt.Sprintf("%s has these:", clip(strings.Join(names, ", ")))}, nil}
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

// NoEndpoint is for a route whose pool is empty; why says so in a sentence.
func NoEndpoint(r *routes.Route, why string) Page {
	return Page{http.StatusServiceUnavailable, []string{why, fmt.Sprintf("%s%s is a path of %s.", r.Host, r.Path, r.Owner)}, nil}
}

// Failure is how the last endpoint that was asked has failed.
type Failure int

// The failures.
const (
	Broken     Failure = iota // refused, or broken off before an answer
	Unreached                 // could not be reached in time
	Unanswered                // has not begun to answer in time
)

// AllFailed is for a request that no endpoint has answered.
func AllFailed(r *routes.Route, how Failure) Page {
	what := "Its address"
	if r.Backend.Service != "" {
		what = "Service " + r.Backend.Namespace + "/" + r.Backend.Service
	}
	p := Page{http.StatusBadGateway, []string{what + " has endpoints, but none that was asked has answered.", fmt.Sprintf("%s%s is a path of %s.", r.Host, r.Path, r.Owner)}, nil}
	switch how {
	case Unreached:
		p.Status, p.Lines[0] = http.StatusGatewayTimeout, what+" has endpoints, but they could not be reached in time."
	case Unanswered:
		p.Status, p.Lines[0] = http.StatusGatewayTimeout, what+" has endpoints, but the one that was asked has not begun to answer in time."
	}
	return p
}

// Body is the page, as HTML for who prefers that.
func (p Page) Body(accept string) (kind, body string) {
	title := fmt.Sprintf("%d %s", p.Status, http.StatusText(p.Status))
	var b strings.Builder
	if strings.Contains(accept, "text/html") {
		fmt.Fprintf(&b, "<!DOCTYPE html>\n<title>%s</title>\n<h1>%s</h1>\n", title, title)
		for _, l := range p.Lines {
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
	for _, l := range p.Lines {
		b.WriteString(l + "\n")
	}
	for _, l := range p.list {
		b.WriteString("  " + l + "\n")
	}
	return "text/plain; charset=utf-8", b.String()
}

// Write answers a request with the page.
func (p Page) Write(w http.ResponseWriter, r *http.Request) {
	kind, body := p.Body(r.Header.Get("Accept"))
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", fmt.Sprint(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(body))
	}
}
