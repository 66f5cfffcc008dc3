package remote

import (
	"net/http"
	"strings"
)

// RoundTrip implements http.RoundTripper for requests that somebody else has made, for any path of the API: it sends them to
// this client's server with its credentials, also those that upgrade their connection. Of a request's URL only path and
// query count. Answers are returned as they are, also refusals.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	base, err := http.NewRequest(http.MethodGet, c.base, nil)
	if err != nil {
		return nil, err
	}
	out := req.Clone(req.Context())
	out.URL.Scheme, out.URL.Host, out.Host = base.URL.Scheme, base.URL.Host, ""
	if below := base.URL.EscapedPath(); below != "" {
		out.URL.RawPath = below + out.URL.EscapedPath()
		out.URL.Path = base.URL.Path + out.URL.Path
	}
	if out.Header.Get("User-Agent") == "" {
		out.Header.Set("User-Agent", c.agent)
	}
	c.identify(out.Header)
	transport := c.http.Transport
	if out.Header.Get("Upgrade") != "" {
		transport = c.upgrades()
	}
	resp, err := transport.RoundTrip(out)
	if err != nil {
		return nil, c.failed(req.Context(), err)
	}
	return resp, nil
}

// onlyHTTP1 is a transport that speaks no HTTP/2.
func onlyHTTP1(t *http.Transport) *http.Transport {
	out := t.Clone()
	out.ForceAttemptHTTP2, out.DisableKeepAlives = false, true
	out.Protocols = new(http.Protocols)
	out.Protocols.SetHTTP1(true)
	if out.TLSClientConfig != nil {
		out.TLSClientConfig.NextProtos = []string{"http/1.1"}
	}
	return out
}

// URL is the server's, for links; a unix socket has none, and it is empty then.
func (c *Client) URL() string {
	if strings.HasPrefix(c.at, "http") {
		return c.base
	}
	return ""
}
