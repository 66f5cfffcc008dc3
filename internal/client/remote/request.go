package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const jsonType = "application/json"

// request is one call of the API.
type request struct {
	method string
	path   string
	query  url.Values
	accept string // empty: JSON
	// contentType of body; only with a body.
	contentType string
	body        io.Reader
}

// Do makes a request that no other method makes. The caller closes the response's body. An answer of 400 or more is
// returned as an error, as by the other methods. contentType may be empty.
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, contentType string, body io.Reader) (*http.Response, error) {
	return c.do(ctx, request{method: method, path: path, query: query, contentType: contentType, body: body, accept: "*/*"})
}

func (c *Client) do(ctx context.Context, r request) (*http.Response, error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, r.body)
	if err != nil {
		return nil, err
	}
	if r.accept == "" {
		r.accept = jsonType
	}
	req.Header.Set("Accept", r.accept)
	req.Header.Set("User-Agent", c.agent)
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	c.identify(req.Header)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	c.warnings(resp.Header)
	if resp.StatusCode >= http.StatusBadRequest {
		defer resp.Body.Close()
		return nil, statusError(resp, r)
	}
	return resp, nil
}

// identify says who asks, and as whom.
func (c *Client) identify(h http.Header) {
	if c.token != "" {
		h.Set("Authorization", "Bearer "+c.token)
	}
	if c.as != "" {
		h.Set("Impersonate-User", c.as)
	}
}

// read makes a request and returns the whole answer.
func (c *Client) read(ctx context.Context, r request) ([]byte, error) {
	resp, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	return data, nil
}

// send makes a request with a JSON body.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, body any) ([]byte, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return c.read(ctx, request{method: method, path: path, query: query, contentType: jsonType, body: bytes.NewReader(data)})
}

func (c *Client) warnings(h http.Header) {
	if c.warn == nil {
		return
	}
	warnings, _ := utilnet.ParseWarningHeaders(h["Warning"])
	for _, w := range warnings {
		if w.Code == 299 && w.Text != "" {
			c.warn(w.Text)
		}
	}
}

// isStatus reports whether a body is a Status rather than an object.
func isStatus(data []byte) bool {
	var t metav1.TypeMeta
	return json.Unmarshal(data, &t) == nil && t.Kind == "Status"
}

// statusUID is the UID of the object that a Status is about; empty if it says none.
func statusUID(data []byte) types.UID {
	var s metav1.Status
	if json.Unmarshal(data, &s) != nil || s.Details == nil {
		return ""
	}
	return s.Details.UID
}
