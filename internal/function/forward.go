package function

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/controller/loop"
)

// headerUnsent of an answer says that nothing of a call has begun, so that it may go to another master.
const headerUnsent = "X-Minik8s-Unsent"

// headerCaller of a call that is passed on is who has called.
const headerCaller = "X-Minik8s-Caller"

// pathOf is the path of a subresource of the API.
func pathOf(kind *api.Kind, at loop.Key, sub string) string {
	return fmt.Sprintf("/apis/minik8s.io/v1/namespaces/%s/%s/%s/%s", url.PathEscape(at.Namespace), kind.Plural, url.PathEscape(at.Name), sub)
}

// forward passes a call on to the master that has the instances. begun: something of it may have been done.
func (s *Server) forward(ctx context.Context, w http.ResponseWriter, r *http.Request, a *asked, leader string) (begun bool, err error) {
	query := url.Values{}
	for _, name := range []string{"wait", "text", "id"} {
		if v, ok := a.query[name]; ok {
			query[name] = v
		}
	}
	header := http.Header{headerTrace: {a.q.trace}, headerCaller: {a.caller}}
	if a.q.contentType != "" {
		header.Set("Content-Type", a.q.contentType)
	}
	if a.how.later {
		query.Set("id", a.q.id) // so that it is made once, however often it is said
	} else if v := r.Header.Values("Prefer"); len(v) > 0 {
		header["Prefer"] = v
	}
	// That master says itself when the call's time is over; a chain, and an argument that cannot be kept, may take longer than a function.
	whole, cancel := context.WithTimeout(r.Context(), a.patience())
	defer cancel()
	sent, err := s.pass(ctx, whole, w, leader, http.MethodPost, pathOf(api.Functions, a.q.function, minik8s.FunctionCallSubresource), query, header, a.q.body)
	if err != nil && sent && !a.how.later {
		return true, apierrors.NewServiceUnavailable(fmt.Sprintf("master %s, which had the call, cannot be asked any more: whether the function ran is not known: %v", leader, err))
	}
	return err == nil || r.Context().Err() != nil, err
}

// patience is how long another master's answer to a call is waited for.
func (a *asked) patience() time.Duration {
	if len(a.q.body) > maxKept {
		return maxSteps * a.limit
	}
	return max(a.limit, a.how.wait) + patience
}

// pass has another master answer. sent: some of the request was; without an error the answer was passed on. errNobody: that master has done nothing.
// begin ends it as long as nothing was sent.
func (s *Server) pass(begin, ctx context.Context, w http.ResponseWriter, leader, method, path string, query url.Values, header http.Header, body []byte) (sent bool, err error) {
	base, ask, err := s.cfg.Other(ctx, leader)
	if err != nil {
		return false, unreachable(leader, err)
	}
	query.Set(forwardedBy, s.cfg.Master)
	var way attempt
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(begin, func() {
		if !way.wrote.Load() {
			cancel()
		}
	})()
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, way.trace()), method, base+path+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header = header
	resp, err := ask.RoundTrip(req)
	if err != nil {
		return way.wrote.Load(), unreachable(leader, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.Header.Get(headerUnsent) != "" {
		return false, errNobody
	}
	for _, name := range []string{"Content-Type", "Content-Length", "Location", "Retry-After", "X-Content-Type-Options", headerCall, headerFault, headerFunction, headerCold, headerTrace} {
		if v := resp.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(resp.StatusCode)
	io.Copy(w, resp.Body) //nolint:errcheck // the length tells the caller
	return true, nil
}

func unreachable(leader string, err error) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf("master %s, which has the calls, cannot be asked: %v", leader, err))
}

// attempt is how far the last attempt of a request has come. A client begins another one by itself only when nothing was written.
type attempt struct {
	tried atomic.Bool // a connection was asked for
	wrote atomic.Bool // something may have been written
}

func (a *attempt) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GetConn: func(string) {
		a.tried.Store(true)
		a.wrote.Store(false)
	}, WroteHeaders: func() { a.wrote.Store(true) }}
}
