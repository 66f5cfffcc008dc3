package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"minik8s/internal/client"
	"minik8s/internal/clock"
)

var _ client.Interface = (*Client)(nil)

// Config is a server's address and the client's credentials.
type Config struct {
	// Server is the URL of the API: "https://10.0.0.1:6443". A path in it is kept.
	Server string
	// Socket is the path of a unix socket of the API; it takes the place of Server.
	Socket string
	// CA, Cert and Key are PEM. Without CA the machine's own roots are trusted.
	CA, Cert, Key []byte
	// Identity, if set, takes the place of Cert and Key: it is asked for each new connection, so that a certificate can be
	// renewed.
	Identity func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
	// Token goes along as a bearer token.
	Token string
	// As is the user whose rights requests are to have, instead of the caller's own, who has to be allowed to ask for that.
	As string
	// ServerName is the name that the server's certificate must have, if not the host of Server.
	ServerName string
	// Insecure turns off the check of the server's certificate. Only a kubeconfig can set it.
	Insecure bool
	// UserAgent names the caller in the server's logs.
	UserAgent string
	// Warn, which may be nil, is called with the server's Warning headers, possibly from several goroutines.
	Warn func(text string)
}

// Client talks to one server. It is safe for use from several goroutines.
type Client struct {
	base  string // "https://10.0.0.1:6443", no slash at its end
	at    string // the address for people: the URL or the socket
	token string
	as    string
	agent string
	warn  func(string)
	http  *http.Client
	// upgrades is for requests that take over their connection, which only HTTP/1.1 allows.
	upgrades func() *http.Transport
}

const (
	dialTimeout = 5 * time.Second
	// A connection with only watches may be idle for long: pings detect that the other side is dead, which takes the
	// kernel a quarter of an hour, or that it is stopped, which the kernel does not tell. A node's heartbeats come more
	// often than pings, so there are none on a good day. Both with dialTimeout are well below the time that a node may be
	// silent (40 s).
	pingAfter   = 15 * time.Second
	pingTimeout = 5 * time.Second
)

// lostAfter is how long what was sent may stay unacknowledged before the connection counts as lost. Without it the kernel
// repeats it at longer and longer intervals, and goes on long after the network is back.
const lostAfter = 8 * time.Second

func giveUpLostConnections(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		// On a unix socket it fails, and is not needed.
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lostAfter.Milliseconds())) //nolint:errcheck // as above
	})
}

// New is a client of the server that cfg names. Nothing is sent before the first call.
func New(cfg Config) (*Client, error) {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second, Control: giveUpLostConnections}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 8,
		ForceAttemptHTTP2:   true,
		// Compression costs more than the cluster's own network does.
		DisableCompression: true,
		HTTP2:              &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	c := &Client{token: cfg.Token, as: cfg.As, agent: cfg.UserAgent, warn: cfg.Warn, http: &http.Client{Transport: transport}}
	if c.agent == "" {
		c.agent = "minik8s"
	}
	c.upgrades = sync.OnceValue(func() *http.Transport { return onlyHTTP1(transport) })
	if cfg.Socket != "" {
		c.base, c.at = "http://minik8s", cfg.Socket
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", cfg.Socket)
		}
		return c, nil
	}
	base, err := serverURL(cfg.Server)
	if err != nil {
		return nil, err
	}
	c.base, c.at = base, base
	if strings.HasPrefix(base, "https://") {
		if transport.TLSClientConfig, err = tlsConfig(cfg); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// At is the server's address, for people: its URL or socket.
func (c *Client) At() string { return c.at }

// OnWarning sets Config.Warn. Call it before the client is used.
func (c *Client) OnWarning(warn func(text string)) { c.warn = warn }

// Close closes idle connections; calls in progress continue.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func serverURL(server string) (string, error) {
	if server == "" {
		return "", errors.New("no server given: a URL like https://HOST:6443 is needed")
	}
	if !strings.Contains(server, "://") {
		server = "https://" + server
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("the server's URL: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", fmt.Errorf("the server's URL is %q: a URL like https://HOST:6443 is needed", server)
	}
	return u.Scheme + "://" + u.Host + strings.TrimRight(u.EscapedPath(), "/"), nil
}

func tlsConfig(cfg Config) (*tls.Config, error) {
	t := &tls.Config{Time: clock.Now, MinVersion: tls.VersionTLS12, ServerName: cfg.ServerName, InsecureSkipVerify: cfg.Insecure,
		GetClientCertificate: cfg.Identity}
	if len(cfg.CA) > 0 {
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(cfg.CA) {
			return nil, errors.New("the cluster's CA holds no PEM certificate")
		}
	}
	if len(cfg.Cert) > 0 || len(cfg.Key) > 0 {
		pair, err := tls.X509KeyPair(cfg.Cert, cfg.Key)
		if err != nil {
			return nil, fmt.Errorf("the client's certificate and key: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}
