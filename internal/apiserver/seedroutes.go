package apiserver

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"minik8s/internal/api/dialect"
	"minik8s/internal/api/minik8s"
)

// The routes of functions that the second seed system's documents and scripts name. Each is another way to write a request of the API, and
// is authorised as that:
//
//	POST, GET         /api/funcs/template         a Func becomes a Function; all Functions
//	GET, PUT, DELETE  /api/funcs/template/NAME    the Function NAME
//	POST              /api/funcs/NAME             calls it: the result, or after ten seconds the call's id
//	GET               /api/funcs/ID               the result of the call ID
//	PUT               /api/funcs/NAME/ID          calls NAME as the call ID, once however often it is said
//	PUT               /api/funcs/RETURN/ID        gives the call ID its result
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
			rewriteFuncs(c.Response(), r)
		}
		return next(c)
	}
}

func rewriteFuncs(w http.ResponseWriter, r *http.Request) {
	rest := strings.Trim(strings.TrimPrefix(r.URL.Path, funcs), "/")
	word, name, _ := strings.Cut(rest, "/")
	query := url.Values{}
	var to string
	switch {
	case word == "template" && !strings.Contains(name, "/"):
		to = funcNamespace + "functions"
		if name != "" {
			to += "/" + name
		}
		if r.Method == http.MethodPost || r.Method == http.MethodPut {
			r.Body, r.ContentLength = &funcBody{w: w, from: r.Body}, -1 // read, and so translated, once the request is authorised
			r.Header.Set("Content-Type", "application/json")
		}
	case rest == "" || strings.Contains(name, "/"):
		return // not found
	case name != "" && r.Method == http.MethodPut && word == minik8s.FunctionReturn:
		to = funcNamespace + "functioncalls/" + name + "/result"
	case name != "" && r.Method == http.MethodPut:
		r.Method = http.MethodPost
		to = funcNamespace + "functions/" + word + "/call"
		query.Set("id", name)
		query.Set("text", "")
	case name != "":
		return // not found
	case r.Method == http.MethodPost:
		to = funcNamespace + "functions/" + rest + "/call"
		query.Set("wait", funcWait)
		query.Set("text", "")
	case r.Method == http.MethodGet:
		to = funcNamespace + "functioncalls/" + rest + "/result"
		query.Set("text", "")
	default:
		return
	}
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = to, "", query.Encode()
}

// funcBody is a Func that is read as the Function that it means.
type funcBody struct {
	w    http.ResponseWriter
	from io.ReadCloser
	doc  *bytes.Reader // nil: nothing was read yet
}

func (b *funcBody) Read(p []byte) (int, error) {
	if b.doc == nil {
		body, err := io.ReadAll(http.MaxBytesReader(b.w, b.from, maxFunc))
		if err != nil {
			return 0, err
		}
		doc, err := dialect.Func(body)
		if err != nil {
			return 0, err
		}
		b.doc = bytes.NewReader(doc)
	}
	return b.doc.Read(p)
}

func (b *funcBody) Close() error { return b.from.Close() }
