package function

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"minik8s/internal/function/image"
	"minik8s/internal/imageaccess"
)

// Elsewhere is another registry than the cluster's own.
type Elsewhere struct {
	// Name is HOST[:PORT][/PATH], with which the names of images begin; empty: there is none.
	Name string
	// AuthFile is a docker config.json with this master's logins; empty: it has none.
	AuthFile string
	// Insecure are registries to speak plain HTTP with; those on loopback always are.
	Insecure []string
}

// Bounds of what another registry may take: a push has pushTime, a removal deleteTime, and after one that failed none is tried for a while, from minPause, then
// twice as long each time, up to maxPause.
const (
	pushTime   = 10 * time.Minute
	deleteTime = time.Minute
	minPause   = 5 * time.Second
	maxPause   = time.Minute
)

// elsewhere is such a registry at work. Its methods are called by one at a time.
type elsewhere struct {
	image.Registry
	pause  time.Duration
	until  time.Time
	failed *registryError // until then
	told   bool           // that it removes nothing
}

func newElsewhere(c Elsewhere) *elsewhere {
	if c.Name == "" {
		return nil
	}
	host, _, _ := strings.Cut(c.Name, "/")
	way := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 30 * time.Second, IdleConnTimeout: 10 * time.Second}
	return &elsewhere{Registry: image.Registry{Host: c.Name, Transport: &guarded{way, c.Insecure}, Foreign: true, Plain: imageaccess.Plain(host, c.Insecure),
		Logins: func() (imageaccess.Logins, error) { return imageaccess.File(c.AuthFile) }}}
}

// guarded refuses plain HTTP with hosts that are not spoken with so: the library would try it with private addresses, and send the login.
type guarded struct {
	http.RoundTripper
	insecure []string
}

func (g *guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !imageaccess.Plain(r.URL.Host, g.insecure) {
		return nil, fmt.Errorf("plain HTTP with %s is not allowed (--insecure-registries=%s allows it)", r.URL.Host, r.URL.Host)
	}
	return g.RoundTripper.RoundTrip(r)
}

// maxSaid is how much of what a registry says is passed on.
const maxSaid = 1000

// registryError is why a registry takes no image; it is tried again after a while.
type registryError struct {
	host  string
	err   error
	after time.Duration
}

func (e *registryError) Error() string {
	said := e.err.Error()
	if image.Refused(e.err) {
		said = "it does not let this master in (which login has --registry-authfile for it?): " + said
	}
	if len(said) > maxSaid { // it may be a page of HTML
		said = strings.ToValidUTF8(said[:maxSaid], "") + "..."
	}
	return fmt.Sprintf("the registry %s (--function-registry) does not take the image, and is tried again: %s", e.host, said)
}

func (e *registryError) Unwrap() error { return e.err }

// push pushes, unless the registry has just failed in a way that is no single image's fault.
func (e *elsewhere) push(ctx context.Context, what func(ctx context.Context) error) error {
	now := time.Now()
	if e.failed != nil && now.Before(e.until) {
		return &registryError{e.Host, e.failed.err, e.until.Sub(now)}
	}
	limited, cancel := context.WithTimeout(ctx, pushTime)
	defer cancel()
	err := what(limited)
	if err == nil {
		e.pause, e.failed = 0, nil
		return nil
	}
	failed := &registryError{e.Host, err, again}
	if ctx.Err() == nil && image.ForAll(err) {
		e.pause = min(max(2*e.pause, minPause), maxPause)
		failed.after, e.until, e.failed = e.pause, time.Now().Add(e.pause), failed
	}
	return failed
}

// retryAfter is after how long it is worth trying again what failed so.
func retryAfter(err error) time.Duration {
	if e := (*registryError)(nil); errors.As(err, &e) {
		return e.after
	}
	return again
}
