package externaltest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"minik8s/internal/certs"
	"minik8s/internal/machine"
)

// inside is the environment variable that makes a test's program a server.
const inside = "MINIK8S_TEST_ETCD"

// Server is an etcd of one member, or one of several.
type Server struct {
	URL                       string
	CAFile, CertFile, KeyFile string // of a client
	// Dir has the server's certificates, as ca and server.
	Dir string
	// CA has signed them.
	CA *certs.Authority
	// Quota bounds its file, in bytes; 0: etcd's own. It counts at the next start.
	Quota int64
	// Plain has it speak http, without certificates.
	Plain bool

	t    testing.TB
	name string // of its data
	port int
	peer int
	// cluster are all members, as etcd's settings have it.
	cluster string
	cmd     *exec.Cmd
}

type settings struct {
	Dir, Name, Cluster string
	Port, Peer         int
	Quota              int64
	Plain              bool
}

// Main runs a server, and does not return, if this program was called for that.
func Main() {
	text := os.Getenv(inside)
	if text == "" {
		return
	}
	var s settings
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = serve(s)
	}
	fmt.Fprintln(os.Stderr, "etcd:", err)
	os.Exit(1)
}

func serve(s settings) error {
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.QuotaBackendBytes, c.UnsafeNoFsync = filepath.Join(s.Dir, s.Name), "error", s.Quota, false
	client := url.URL{Scheme: "https", Host: fmt.Sprintf("127.0.0.1:%d", s.Port)}
	if s.Plain {
		client.Scheme = "http"
	}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ClientTLSInfo = transport.TLSInfo{CertFile: filepath.Join(s.Dir, "server.crt"), KeyFile: filepath.Join(s.Dir, "server.key"),
		TrustedCAFile: filepath.Join(s.Dir, "ca.crt"), ClientCertAuth: true}
	if s.Plain {
		c.ClientTLSInfo = transport.TLSInfo{}
	}
	c.Name = s.Name
	c.ListenPeerUrls = []url.URL{{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", s.Peer)}}
	c.AdvertisePeerUrls = c.ListenPeerUrls
	c.InitialCluster = s.Cluster
	c.TickMs, c.ElectionMs = 20, 200 // it starts again in a moment
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	return <-e.Err()
}

// Start starts a server, which ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := New(t)
	s.Start()
	return s
}

// New makes a server that is not started yet.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, Dir: t.TempDir()}
	s.place("data")
	s.cluster = s.member()
	var err error
	if s.CA, err = certs.OpenAuthority(s.Dir, "etcd-ca"); err != nil {
		t.Fatal(err)
	}
	if _, err = s.CA.Server(s.Dir, "server", []string{"127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	s.CAFile = filepath.Join(s.Dir, "ca.crt")
	s.CertFile, s.KeyFile = s.Client("client")
	t.Cleanup(s.Kill)
	return s
}

// StartCluster starts several members of one etcd.
func StartCluster(t testing.TB, n int) []*Server {
	t.Helper()
	first := New(t)
	out := []*Server{first}
	for i := 1; i < n; i++ {
		s := *first
		s.place(fmt.Sprint("data-", i))
		t.Cleanup(s.Kill)
		first.cluster += "," + s.member()
		out = append(out, &s)
	}
	for _, s := range out {
		s.cluster = first.cluster
		s.Start()
	}
	return out
}

// place gives a member a name and ports that are free.
func (s *Server) place(name string) {
	s.t.Helper()
	s.name = name
	for _, port := range []*int{&s.port, &s.peer} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.t.Fatal(err)
		}
		defer l.Close() // after the other one is chosen
		*port = l.Addr().(*net.TCPAddr).Port
	}
	s.URL = fmt.Sprintf("https://127.0.0.1:%d", s.port)
}

func (s *Server) member() string { return fmt.Sprintf("%s=http://127.0.0.1:%d", s.name, s.peer) }

// Client makes a certificate for a client.
func (s *Server) Client(user string) (certFile, keyFile string) {
	s.t.Helper()
	if _, err := s.CA.Client(s.Dir, user, user); err != nil {
		s.t.Fatal(err)
	}
	return filepath.Join(s.Dir, user+".crt"), filepath.Join(s.Dir, user+".key")
}

// Start starts it, with what it has, and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	text, err := json.Marshal(settings{Dir: s.Dir, Name: s.name, Cluster: s.cluster, Port: s.port, Peer: s.peer, Quota: s.Quota, Plain: s.Plain})
	if err != nil {
		s.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command(self)
	s.cmd.Env = append(os.Environ(), inside+"="+string(text))
	s.cmd.Stderr = os.Stderr
	if err := machine.StartChild(s.cmd); err != nil {
		s.t.Fatal(err)
	}
	if s.Plain {
		s.URL = strings.Replace(s.URL, "https:", "http:", 1)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatal("etcd does not start: ", err)
		}
	}
}

// Kill ends it at once.
func (s *Server) Kill() {
	if s.cmd != nil {
		s.cmd.Process.Kill() //nolint:errcheck // it may have ended
		s.cmd.Wait()         //nolint:errcheck // killed
		s.cmd = nil
	}
}

// Wipe removes its data, as long as it does not run.
func (s *Server) Wipe() {
	s.t.Helper()
	if err := os.RemoveAll(filepath.Join(s.Dir, s.name)); err != nil {
		s.t.Fatal(err)
	}
}

// Signal sends it a signal, such as SIGSTOP, after which it answers nothing.
func (s *Server) Signal(sig syscall.Signal) {
	s.t.Helper()
	if err := machine.SignalChild(s.cmd.Process, sig); err != nil {
		s.t.Fatal(err)
	}
}

// Put writes a key, past whoever uses it.
func (s *Server) Put(key, value string) {
	s.t.Helper()
	cfg := clientv3.Config{Endpoints: []string{s.URL}}
	if !s.Plain {
		way := transport.TLSInfo{CertFile: s.CertFile, KeyFile: s.KeyFile, TrustedCAFile: s.CAFile}
		var err error
		if cfg.TLS, err = way.ClientConfig(); err != nil {
			s.t.Fatal(err)
		}
	}
	c, err := clientv3.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // nothing follows
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := c.Put(ctx, key, value); err != nil {
		s.t.Fatal(err)
	}
}
