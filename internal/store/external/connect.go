package external

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
)

const (
	// maxSend bounds a request, in bytes. etcd itself takes 1.5 MiB unless it is told otherwise.
	maxSend = 8 << 20
	// A connection that is lost is tried again after between minRedial and maxRedial.
	minRedial, maxRedial = 50 * time.Millisecond, time.Second
	dialLimit            = 3 * time.Second
	// A connection on which nothing is heard is asked for a sign of life, so that watches do not wait on a dead one. etcd takes it ill when asked more often than every 5 s.
	keepaliveAfter, keepaliveLimit = 10 * time.Second, 3 * time.Second
)

// connect makes a store that is not opened yet.
func connect(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	options := []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(maxSend)),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: dialLimit,
			Backoff: backoff.Config{BaseDelay: minRedial, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxRedial}}),
	}
	if cfg.tls() {
		options = append(options, grpc.WithTransportCredentials(fresh{cfg}))
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: cfg.Servers, Context: context.WithoutCancel(ctx), Logger: zap.NewNop(), DialOptions: options,
		DialKeepAliveTime: keepaliveAfter, DialKeepAliveTimeout: keepaliveLimit,
		MaxUnaryRetries: 1}) // what may be repeated is repeated here
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	conn := c.ActiveConnection()
	life, end := context.WithCancel(context.Background())
	s := &Store{cfg: cfg, client: c, kv: pb.NewKVClient(conn), watches: pb.NewWatchClient(conn), leases: pb.NewLeaseClient(conn),
		upkeep: pb.NewMaintenanceClient(conn), fencing: make(chan struct{}, 1), life: life, end: end, failed: make(chan error, 1)}
	return s, nil
}

// Check finds files that cannot be used.
func (c Config) Check() error {
	_, err := c.tlsConfig("")
	return err
}

func (c Config) tls() bool { return len(c.Servers) > 0 && strings.HasPrefix(c.Servers[0], "https:") }

// servers are etcd's, for people. Their URLs hold no secret.
func (s *Store) servers() string { return strings.Join(s.cfg.Servers, ",") }

// tlsConfig reads the files, which may have changed.
func (c Config) tlsConfig(host string) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("etcd-cafile: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("etcd-cafile: %s has no certificate in PEM form", c.CAFile)
		}
	}
	if c.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("etcd-certfile, etcd-keyfile: %w", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}

// fresh makes TLS connections with the certificates that are in the files at that moment.
type fresh struct{ cfg Config }

func (f fresh) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conf, err := f.cfg.tlsConfig("")
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(conf).ClientHandshake(ctx, authority, conn)
}

func (f fresh) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.ErrUnsupported
}

func (f fresh) Info() credentials.ProtocolInfo { return credentials.NewTLS(nil).Info() }

func (f fresh) Clone() credentials.TransportCredentials { return f }

// OverrideServerName implements credentials.TransportCredentials; nothing uses it.
func (f fresh) OverrideServerName(string) error { return errors.ErrUnsupported }

// until calls f, which fails with final for what waiting does not cure, until it succeeds. While etcd cannot be reached it
// says so, and why, unless that is a mistake in the certificates.
func (s *Store) until(ctx context.Context, what string, f func(context.Context) error) error {
	said := time.Time{}
	for {
		err := f(ctx)
		var final finalError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &final):
			return final.error
		}
		reason, mistake := s.diagnose(ctx)
		if mistake {
			return reason
		}
		if reason == nil {
			reason = err
		}
		if time.Since(said) > sayEvery {
			s.cfg.Log.Warn("this master waits for etcd", "servers", s.cfg.Servers, "missing", what, "error", reason)
			said = time.Now()
		}
		if !sleep(ctx, maxRedial/4) {
			return ctx.Err()
		}
	}
}

// sayEvery is how often a master that waits says so.
const sayEvery = 30 * time.Second

// finalError is one that waiting does not cure.
type finalError struct{ error }

func finalf(format string, args ...any) error { return finalError{fmt.Errorf(format, args...)} }

// diagnose says why etcd cannot be used: the first server's reason, and whether on all servers it is a mistake in the
// certificates or URLs.
func (s *Store) diagnose(ctx context.Context) (reason error, mistake bool) {
	reasons, bad := make([]error, len(s.cfg.Servers)), make([]bool, len(s.cfg.Servers))
	var wg sync.WaitGroup
	for i, server := range s.cfg.Servers { // each may take a while
		wg.Go(func() { reasons[i], bad[i] = s.cfg.probe(ctx, server) })
	}
	wg.Wait()
	if i := slices.IndexFunc(reasons, func(err error) bool { return err != nil }); i >= 0 {
		reason = reasons[i]
	}
	return reason, !slices.Contains(bad, false)
}

// probe connects to a server by itself, because gRPC's errors are only text.
func (c Config) probe(ctx context.Context, server string) (reason error, mistake bool) {
	u, err := url.Parse(server)
	if err != nil {
		return errors.New("an URL of etcd-servers is none"), true
	}
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err, false
	}
	defer conn.Close() //nolint:errcheck // it was only a question
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline) //nolint:errcheck // then it takes longer
	}
	if !c.tls() {
		return c.probePlain(server, conn)
	}
	conf, err := c.tlsConfig(u.Hostname())
	if err != nil {
		return err, false // the files are about to change
	}
	conf.NextProtos = []string{"h2"}
	t := tls.Client(conn, conf)
	err = t.HandshakeContext(ctx)
	var foreign x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case err == nil:
		return c.refused(server, t)
	case errors.As(err, &foreign):
		return fmt.Errorf("etcd at %s: the authority in --etcd-cafile (%s) has not signed its certificate: %w", server, or(c.CAFile, "none is given, so the system's"), foreign), true
	case errors.As(err, &name):
		return fmt.Errorf("etcd at %s: its certificate is for another name: %w: give a name or address that it has in --etcd-servers", server, name), true
	case errors.As(err, &invalid):
		return fmt.Errorf("etcd at %s: its certificate cannot be used: %w", server, invalid), true
	case isAlert(err):
		return c.alert(server, err), true
	case speaksPlain(ctx, u.Host):
		return fmt.Errorf("etcd at %s speaks no TLS: give http:// in --etcd-servers, if that is meant", server), true
	}
	return fmt.Errorf("etcd at %s: %w", server, err), false
}

// refused finds out whether the server takes this machine's certificate, which with TLS 1.3 it says only after the
// handshake: as an answer to what is sent first.
func (c Config) refused(server string, t *tls.Conn) (error, bool) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	_, err := t.Write([]byte(preface))
	if err == nil {
		_, err = t.Read(make([]byte, 1))
	}
	if isAlert(err) {
		return c.alert(server, err), true
	}
	return nil, false
}

func (c Config) alert(server string, err error) error {
	if c.CertFile == "" {
		return fmt.Errorf("etcd at %s wants a certificate: give --etcd-certfile and --etcd-keyfile: %w", server, err)
	}
	return fmt.Errorf("etcd at %s refuses the certificate in --etcd-certfile (%s): %w", server, c.CertFile, err)
}

// isAlert reports whether a connection failed because the other side refused it, in TLS's own words.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// speaksPlain reports whether a server answers without TLS: etcd itself only closes the connection on who tries it with TLS.
func speaksPlain(ctx context.Context, address string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/version", nil)
	if err != nil {
		return false
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close() //nolint:errcheck // only its code is read
	return resp.StatusCode == http.StatusOK
}

// probePlain finds out whether a server that is given with http wants https.
func (c Config) probePlain(server string, conn net.Conn) (error, bool) {
	conf := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // nothing is sent over it
	if err := tls.Client(conn, conf).Handshake(); err == nil || isAlert(err) {
		return fmt.Errorf("etcd at %s speaks TLS: give https:// in --etcd-servers, and --etcd-cafile", server), true
	}
	return nil, false
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
