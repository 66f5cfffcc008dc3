package apiproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"time"

	"minik8s/internal/ctl/exit"
)

// The filters that kubectl has too, where nothing else is said: regular expressions, separated by commas.
const (
	DefaultAcceptHosts   = `^localhost$,^127\.0\.0\.1$,^\[::1\]$`
	DefaultAcceptPaths   = `^.*`
	DefaultRejectPaths   = `^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach,^/api/.*/nodes/.*/proxy/+(exec|attach)`
	DefaultRejectMethods = `^$`
)

// Filter says which requests are passed on. All fields are lists of regular expressions, separated by commas.
type Filter struct {
	AcceptHosts, AcceptPaths, RejectPaths, RejectMethods string
}

// filter is a Filter that has been read.
type filter struct {
	acceptHosts, acceptPaths, rejectPaths, rejectMethods []*regexp.Regexp
}

func (f Filter) compile() (out filter, err error) {
	for flag, x := range map[string]struct {
		text string
		to   *[]*regexp.Regexp
	}{
		"accept-hosts": {f.AcceptHosts, &out.acceptHosts}, "accept-paths": {f.AcceptPaths, &out.acceptPaths},
		"reject-paths": {f.RejectPaths, &out.rejectPaths}, "reject-methods": {f.RejectMethods, &out.rejectMethods},
	} {
		if x.text == "" {
			continue
		}
		for word := range strings.SplitSeq(x.text, ",") {
			r, err := regexp.Compile(word)
			if err != nil {
				return out, exit.Usagef("--%s: %v; expected regular expressions, separated by commas", flag, err)
			}
			*x.to = append(*x.to, r)
		}
	}
	return out, nil
}

func (f *filter) accepts(method, path, host string) bool {
	any := func(list []*regexp.Regexp, text string) bool {
		for _, r := range list {
			if r.MatchString(text) {
				return true
			}
		}
		return false
	}
	return !any(f.rejectPaths, path) && !any(f.rejectMethods, method) && any(f.acceptHosts, host) && any(f.acceptPaths, path)
}

// Handler passes requests below prefix on to the API, which it reaches by api. The error is of a filter that cannot be read.
func Handler(api http.RoundTripper, prefix string, f Filter) (http.Handler, error) {
	compiled, err := f.compile()
	if err != nil {
		return nil, err
	}
	prefix = "/" + strings.Trim(prefix, "/")
	forward := &httputil.ReverseProxy{
		Transport: api, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "api" // the transport puts the server's own in place
			r.Out.Header.Del("Authorization")
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	serve := http.Handler(forward)
	if prefix != "/" {
		serve = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			below, ok := strings.CutPrefix(r.URL.EscapedPath(), prefix)
			if !ok || below != "" && below[0] != '/' {
				http.NotFound(w, r)
				return
			}
			if below == "" {
				below = "/"
			}
			u, err := url.ParseRequestURI(below)
			if err != nil {
				http.NotFound(w, r)
				return
			}
			u.RawQuery = r.URL.RawQuery
			to := r.Clone(r.Context())
			to.URL = u
			forward.ServeHTTP(w, to)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !compiled.accepts(r.Method, apiPath(r.URL.Path, prefix), hostOf(r.Host)) {
			http.Error(w, "this proxy does not pass such requests on (see --accept-hosts, --accept-paths, --reject-paths, --reject-methods)", http.StatusForbidden)
			return
		}
		serve.ServeHTTP(w, r)
	}), nil
}

// apiPath is a path as the API gets it: the filters are about that, whatever the prefix is.
func apiPath(path, prefix string) string {
	below, ok := strings.CutPrefix(path, prefix)
	if !ok || prefix == "/" {
		return path
	}
	return below
}

// hostOf is the host without its port.
func hostOf(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		return host[:i]
	}
	return host
}

// Listen opens a port of this machine; 0 is any free one.
func Listen(ctx context.Context, address string, port int) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, fmt.Sprint(port)))
	if err != nil {
		return nil, exit.Failf(exit.Failed, "port %d of this machine: %v; choose another one with --port", port, err)
	}
	return l, nil
}

// headerTimeout is how long a client may take to send the head of a request.
const headerTimeout = 30 * time.Second

// Serve answers on l until ctx ends, and closes it.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { srv.Close() }) //nolint:errcheck // nothing is left to be done about it
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
