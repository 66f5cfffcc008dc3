package query

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	prometheus "github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/metrics/query/rules"
)

const (
	// answerTime bounds an answer.
	answerTime = 5 * time.Second
	// idle is how long a connection to Prometheus is kept for the next question.
	idle = 30 * time.Second
	// maxAnswer bounds what Prometheus may answer, in bytes.
	maxAnswer = 64 << 20
)

// Config is what a Source is made from.
type Config struct {
	// URL is Prometheus', and may have a path, a user and a password.
	URL string
	// TokenFile, if set, has the bearer token for it, and is read for each question. CAFile, if set, has the authorities of its
	// certificate in the place of the system's (PEM).
	TokenFile, CAFile string
	// RulesFile, if set, has the rules, in the form of prometheus-adapter; else they are rules.Default.
	RulesFile string
	// Objects lists objects, of which the names are used, and Kinds is what the cluster serves. Neither is called before the
	// first question.
	Objects func(context.Context, *api.Kind, client.ListOptions) (*client.List, error)
	Kinds   func() *api.Table
	Log     *slog.Logger
}

// Source answers from a Prometheus. Its methods are safe for concurrent use.
type Source struct {
	cfg      Config
	at       string // the URL, without user and password
	api      promv1.API
	rules    *rules.Set
	now      func() time.Time
	custom   catalog
	external catalog
}

// New reads the files, and asks nothing yet. An error names the setting.
func New(cfg Config) (*Source, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, errors.New("prometheus: expected a URL")
	}
	shown := *u
	shown.User = nil
	s := &Source{cfg: cfg, at: shown.String(), rules: nil, now: time.Now}
	if cfg.RulesFile == "" {
		s.rules = rules.Default()
	} else if text, err := os.ReadFile(cfg.RulesFile); err != nil {
		return nil, fmt.Errorf("prometheus-rules: %w", err)
	} else if s.rules, err = rules.Parse(text); err != nil {
		return nil, fmt.Errorf("prometheus-rules: %s: %w", cfg.RulesFile, err)
	}
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: answerTime}).DialContext, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 4, IdleConnTimeout: idle, TLSHandshakeTimeout: answerTime}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("prometheus-cafile: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("prometheus-cafile: %s has no certificate: expected PEM", cfg.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	if _, err := (way{nil, cfg.TokenFile}).token(); err != nil {
		return nil, err
	}
	c, err := prometheus.NewClient(prometheus.Config{Address: cfg.URL, Client: &http.Client{Transport: way{transport, cfg.TokenFile},
		// Another host is not Prometheus' to choose, and must not get the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}})
	if err != nil {
		return nil, errors.New("prometheus: expected a URL")
	}
	s.api = promv1.NewAPI(c)
	s.custom = newCatalog(s, s.listCustom)
	s.external = newCatalog(s, s.listExternal)
	return s, nil
}

// way is the way to Prometheus: with the token, and bounded.
type way struct {
	to        http.RoundTripper
	tokenFile string
}

func (w way) token() (string, error) {
	if w.tokenFile == "" {
		return "", nil
	}
	b, err := os.ReadFile(w.tokenFile)
	if err != nil {
		return "", fmt.Errorf("prometheus-token-file: %w", err)
	}
	t := strings.TrimSpace(string(b))
	if t == "" || strings.ContainsFunc(t, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("prometheus-token-file: %s: expected one token", w.tokenFile)
	}
	return t, nil
}

// RoundTrip implements http.RoundTripper.
func (w way) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := w.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := w.to.RoundTrip(req)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	}
	return resp, err
}

// ask has Prometheus work out a query for now. A scalar is a sample without labels. The errors are Statuses.
func (s *Source) ask(ctx context.Context, query string) (model.Vector, error) {
	v, _, err := s.api.Query(ctx, query, s.now(), promv1.WithTimeout(answerTime))
	if err != nil {
		return nil, s.failure(ctx, err, query)
	}
	switch v := v.(type) {
	case model.Vector:
		// A native histogram is no number, and its sample's value is 0.
		return slices.DeleteFunc(v, func(x *model.Sample) bool { return x.Histogram != nil }), nil
	case *model.Scalar:
		return model.Vector{{Value: v.Value, Timestamp: v.Timestamp}}, nil
	}
	return nil, apierrors.NewInternalError(fmt.Errorf("the rule's query %s makes a %s: expected a vector or a scalar", query, v.Type()))
}

// failure is what a client is told when Prometheus did not answer a query.
func (s *Source) failure(ctx context.Context, err error, query string) error {
	var said *promv1.Error
	var lost net.Error
	switch {
	case errors.As(err, &said) && (said.Type == promv1.ErrBadData || said.Type == promv1.ErrExec):
		s.cfg.Log.Warn("Prometheus refuses a query", "query", query, "error", said.Msg)
		return apierrors.NewInternalError(fmt.Errorf("the rule's query %s is refused by Prometheus: %s", query, said.Msg))
	case errors.As(err, &said):
		return apierrors.NewServiceUnavailable(fmt.Sprintf("Prometheus at %s cannot answer: %s: %s", s.at, said.Type, reason(said)))
	case errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.As(err, &lost) && lost.Timeout():
		return apierrors.NewServiceUnavailable(fmt.Sprintf("Prometheus at %s does not answer within %s", s.at, answerTime))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return apierrors.NewServiceUnavailable(fmt.Sprintf("Prometheus at %s ended the connection", s.at))
	}
	if in := new(url.Error); errors.As(err, &in) { // its URL would have the query, too
		err = in.Err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("Prometheus at %s does not answer: %v", s.at, err))
}

// reason is why Prometheus did not answer: it may say so in the body of an error.
func reason(e *promv1.Error) string {
	var body struct{ Error string }
	if json.Unmarshal([]byte(e.Detail), &body) == nil && body.Error != "" {
		return body.Error
	}
	return e.Msg
}

// quantity is a value with the precision of a thousandth, or the largest there is of these; false for what is no number.
func quantity(v model.SampleValue) (resource.Quantity, bool) {
	f := float64(v)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return resource.Quantity{}, false
	}
	milli := int64(math.MaxInt64) // more could not be read as thousandths, as autoscalers do
	if thousandths := math.Round(math.Abs(f) * 1000); thousandths < math.MaxInt64 {
		milli = int64(thousandths)
	}
	if f < 0 {
		milli = -milli
	}
	return *resource.NewMilliQuantity(milli, resource.DecimalSI), true
}
