package membership

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/clock"
)

// Client asks a master.
type Client struct {
	// Server is the URL of a master's API, and CA what signs its certificate.
	Server string
	CA     *x509.CertPool
	// Token is a join token as it is sent, and Cert a client's certificate: one of the two says who asks.
	Token string
	Cert  *tls.Certificate
}

// requestTimeout bounds one question; a first admission restarts the other master's store.
const requestTimeout = 30 * time.Second

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 1 << 20

// Refusal is an answer that asking again does not change.
type Refusal struct {
	Code    int
	Message string
}

func (e *Refusal) Error() string { return e.Message }

// Keys asks for the cluster's keys.
func (c *Client) Keys(ctx context.Context) (Keys, error) {
	var out Keys
	err := c.do(ctx, http.MethodPost, KeysPath, struct{}{}, &out)
	return out, err
}

// Admit asks that a machine be admitted, and returns the addresses of all members; with here the master that is asked does
// it by itself.
func (c *Client) Admit(ctx context.Context, r Request, here bool) ([]string, error) {
	var out Admission
	err := c.do(ctx, http.MethodPost, at(Path, here), r, &out)
	return out.Members, err
}

// List asks who the members are; with here as the master that is asked knows them by itself.
func (c *Client) List(ctx context.Context, here bool) (List, error) {
	var out List
	err := c.do(ctx, http.MethodGet, at(Path, here), nil, &out)
	return out, err
}

// Settings asks for the settings that all machines share.
func (c *Client) Settings(ctx context.Context) (Shared, error) {
	var out Shared
	err := c.do(ctx, http.MethodGet, SettingsPath, nil, &out)
	return out, err
}

// Remove has the master that is asked remove a member, by its name or ID; with here by itself.
func (c *Client) Remove(ctx context.Context, member string, here bool) error {
	var done struct{}
	return c.do(ctx, http.MethodDelete, at(Path+"/"+url.PathEscape(member), here), nil, &done)
}

// at is a path, with here as a question to the master that is asked alone.
func at(path string, here bool) string {
	if here {
		path += "?" + HereQuery + "=true"
	}
	return path
}

// do sends in and reads out. The error is a *Refusal if the server answered with one that is final (4xx, but 429).
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.Server+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	conf := &tls.Config{Time: clock.Now, MinVersion: tls.VersionTLS12, RootCAs: c.CA}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if c.Cert != nil {
		conf.Certificates = []tls.Certificate{*c.Cert}
	}
	t := &http.Transport{TLSClientConfig: conf, Proxy: nil, DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		return json.Unmarshal(data, out)
	}
	said := &Refusal{Code: resp.StatusCode, Message: fmt.Sprintf("%s answered %s", c.Server, resp.Status)}
	var status metav1.Status
	if json.Unmarshal(data, &status) == nil && status.Message != "" {
		said.Message = status.Message
	}
	if resp.StatusCode >= http.StatusInternalServerError || resp.StatusCode == http.StatusTooManyRequests {
		return fmt.Errorf("%s", said.Message)
	}
	return said
}
