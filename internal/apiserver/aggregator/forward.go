package aggregator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"minik8s/internal/api"
	"minik8s/internal/apiserver/authentication"
	"minik8s/internal/apiserver/proxy"
)

// requestTimeout is how long a Service may take for the answer to a request that is no watch or stream, as in Kubernetes.
const requestTimeout = time.Minute

var errLate = errors.New("it did not answer in time")

// streams are the subresources whose answers last as long as the client wants, as in Kubernetes.
var streams = []string{"attach", "exec", "proxy", "log", "portforward"}

// forward sends a request on to the Service of an APIService.
func (a *Aggregator) forward(c echo.Context, to *apiregistrationv1.APIService) error {
	q, err := read(c)
	if err != nil {
		return err
	}
	if !plainPath(c.Request().URL.EscapedPath()) {
		return echo.ErrNotFound
	}
	kind := &api.Kind{Group: to.Spec.Group, Version: to.Spec.Version, Kind: q.Resource, Plural: q.Resource, Namespaced: q.Namespace != ""}
	long := q.verb == "watch" || slices.Contains(streams, q.Subresource) || c.Request().Header.Get("Upgrade") != ""
	leave, err := a.enter(c, kind, q, long)
	if err != nil {
		return err
	}
	defer leave()
	if why := unavailable(to); why != "" {
		return apierrors.NewServiceUnavailable("service unavailable: APIService " + to.Name + " is not available: " + why)
	}
	if a.cfg.Services == nil {
		return apierrors.NewServiceUnavailable("service unavailable: this API server reaches no Services")
	}
	transport, err := a.cfg.Services.transport(to)
	if err != nil {
		return apierrors.NewServiceUnavailable("service unavailable: " + err.Error())
	}
	return a.send(c, to, transport, long)
}

// plainPath reports whether a path means the same to everybody: one that a backend might shorten could lead to something
// other than what was authorised, and so could a name with a slash in it.
func plainPath(escaped string) bool {
	for segment := range strings.SplitSeq(strings.Trim(escaped, "/"), "/") {
		plain, err := url.PathUnescape(segment)
		if err != nil || plain == "" || plain == "." || plain == ".." || strings.ContainsAny(plain, "/\\\x00") {
			return false
		}
	}
	return !strings.HasPrefix(escaped, "//") && !strings.HasSuffix(escaped, "//")
}

// unavailable is the reason why an APIService's Service is not asked; empty if it is available.
func unavailable(a *apiregistrationv1.APIService) string {
	for _, c := range a.Status.Conditions {
		if c.Type == apiregistrationv1.Available {
			if c.Status == apiregistrationv1.ConditionTrue {
				return ""
			}
			return c.Reason
		}
	}
	return "nobody has checked yet"
}

// send sends a request that was let in, and the answer back. The error is 503 if there was no answer, and 504 if it came
// too late; nothing has been written then.
func (a *Aggregator) send(c echo.Context, to *apiregistrationv1.APIService, transport http.RoundTripper, long bool) error {
	in, user := c.Request(), authentication.User(c)
	ctx, cancel := context.WithCancelCause(in.Context())
	defer cancel(nil)
	if !long {
		late := time.AfterFunc(a.cfg.RequestTimeout, func() { cancel(errLate) })
		defer late.Stop()
	}
	var failed error
	reverse := httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		ErrorLog: slog.NewLogLogger(a.cfg.Log.Handler(), slog.LevelDebug),
		Rewrite: func(pr *httputil.ProxyRequest) {
			at := serviceURL(to, pr.In.URL.Path)
			at.RawPath, at.RawQuery = pr.In.URL.RawPath, pr.In.URL.RawQuery
			pr.Out.URL, pr.Out.Host = at, ""
			pr.Out.Header["X-Forwarded-For"] = pr.In.Header["X-Forwarded-For"] // SetXForwarded appends to it
			pr.SetXForwarded()
			pr.Out.Trailer = nil // some servers take what it has for headers
			proxy.DropCredentials(pr.Out.Header)
			setUser(pr.Out.Header, user)
		},
		ModifyResponse: func(resp *http.Response) error {
			if err := context.Cause(ctx); err != nil { // what it says because it was hung up on is no answer
				return err
			}
			for name := range resp.Header { // it cannot let other sites' scripts read what the API says
				if strings.HasPrefix(name, "Access-Control-Allow-") {
					resp.Header.Del(name)
				}
			}
			return staysHere(resp)
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	reverse.ServeHTTP(proxy.InPieces(c.Response(), a.cfg.WriteTimeout), in.WithContext(ctx))
	switch {
	case failed == nil:
		return nil
	case errors.Is(context.Cause(ctx), errLate):
		return apierrors.NewTimeoutError("service "+to.Spec.Service.Namespace+"/"+to.Spec.Service.Name+" did not answer within "+a.cfg.RequestTimeout.String(), 1)
	case in.Context().Err() != nil:
		return nil // the client has disconnected
	}
	return apierrors.NewServiceUnavailable("error trying to reach service: " + withoutSource(failed).Error())
}

// staysHere turns a redirect into a refusal (502), as in Kubernetes: it could lead clients, with their credentials,
// elsewhere.
func staysHere(resp *http.Response) error {
	if resp.StatusCode < 300 || resp.StatusCode > 399 || resp.Header.Get("Location") == "" {
		return nil
	}
	resp.Body.Close() //nolint:errcheck // it is not read
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"code":%d}`+"\n",
		"the backend attempted to redirect this request, which is not permitted", http.StatusBadGateway)
	resp.StatusCode, resp.Status = http.StatusBadGateway, ""
	resp.Header = http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}}
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return nil
}
