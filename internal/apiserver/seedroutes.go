package apiserver

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api/dialect"
)

// The routes of functions that the second seed system's documents and scripts name. Each is another way to write a request of the API, and
// is authorised as that:
//
//	POST              /api/funcs/template         a Func becomes a Function
//	GET, PUT, DELETE  /api/funcs/template/NAME    the Function NAME
//	POST              /api/funcs/NAME             calls it: the result, or after ten seconds the call's id
//	GET               /api/funcs/ID               the result of the call ID
const (
	funcs         = "/api/funcs/"
	funcNamespace = "/apis/minik8s.io/v1/namespaces/default/"
	// funcWait is how long a caller waits there.
	funcWait = "10s"
	// maxFunc bounds what is uploaded, in bytes.
	maxFunc = 4 << 20
)

// seedRoutes rewrites such a request before it is routed.
func seedRoutes(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if r := c.Request(); strings.HasPrefix(r.URL.Path, funcs) {
			if err := rewriteFuncs(c.Response(), r); err != nil {
				return err
			}
		}
		return next(c)
	}
}

func rewriteFuncs(w http.ResponseWriter, r *http.Request) error {
	rest := strings.Trim(strings.TrimPrefix(r.URL.Path, funcs), "/")
	name, isTemplate := strings.CutPrefix(rest, "template")
	name = strings.TrimPrefix(name, "/")
	query := url.Values{}
	var to string
	switch {
	case isTemplate && (name == "" || !strings.Contains(name, "/")):
		to = funcNamespace + "functions"
		if name != "" {
			to += "/" + name
		}
		if r.Method == http.MethodPost || r.Method == http.MethodPut {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxFunc))
			if err != nil {
				return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("a function's files may have %d bytes", maxFunc))
			}
			doc, notes, err := dialect.Func(body)
			if err != nil {
				return apierrors.NewBadRequest(err.Error())
			}
			for _, n := range notes {
				w.Header().Add("Warning", `299 - "`+n+`"`)
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(doc)), int64(len(doc))
			r.Header.Set("Content-Type", "application/json")
		}
	case rest == "" || strings.Contains(rest, "/"):
		return nil // not found
	case r.Method == http.MethodPost:
		to = funcNamespace + "functions/" + rest + "/call"
		query.Set("wait", funcWait)
		query.Set("text", "")
	case r.Method == http.MethodGet:
		to = funcNamespace + "functioncalls/" + rest + "/result"
		query.Set("text", "")
	default:
		return nil
	}
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = to, "", query.Encode()
	return nil
}
