package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/etcdhttp"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"

	"minik8s/internal/disk"
)

// Peers is how the members of a cluster reach each other: over TLS, both sides with a certificate.
type Peers struct {
	// Address is this member's, HOST:PORT. It listens there.
	Address string
	// CertFile and KeyFile are this member's certificate, as a server and as a client; CAFile signs all members'. They
	// are read again for each connection.
	CertFile, KeyFile, CAFile string
	// User is the common name of the certificates of all members, which the CA gives to nobody else.
	User string
}

func (p *Peers) url() url.URL { return peerURL(p.Address) }

func peerURL(address string) url.URL { return url.URL{Scheme: "https", Host: address} }

func (p *Peers) tls() transport.TLSInfo {
	return transport.TLSInfo{CertFile: p.CertFile, KeyFile: p.KeyFile, TrustedCAFile: p.CAFile, ClientCertAuth: true,
		// A machine with several addresses may connect from another one than its certificate names; the name of the
		// user says enough.
		AllowedCNs: []string{p.User}, SkipClientSANVerify: true}
}

// listen opens the port for other members. It is the store's own and not etcd's, which would wait a second for the other
// members' connections when it ends.
func (m *member) listen(p *Peers) error {
	info, u := p.tls(), p.url()
	l, err := transport.NewListenerWithOpts(u.Host, u.Scheme, transport.WithTLSInfo(&info),
		transport.WithTimeout(rafthttp.ConnReadTimeout, rafthttp.ConnWriteTimeout))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("the address for other masters, %s, is in use by another program: stop it or choose another --etcd-port", p.Address)
	case err != nil:
		return fmt.Errorf("the address for other masters, %s: %w", p.Address, err)
	}
	m.port = &http.Server{ReadTimeout: readTimeout, Handler: &m.peers, ErrorLog: log.New(io.Discard, "", 0)} // failed handshakes are not ours
	go m.port.Serve(l)                                                                                       //nolint:errcheck // it ends with close
	return nil
}

// readTimeout bounds how long another member may take to send something: a snapshot is large.
const readTimeout = 5 * time.Minute

// peerHandler answers other members. Until the server has started it refuses them: they ask each other while they join,
// and must not wait for one that waits for them.
type peerHandler struct{ atomic.Pointer[http.Handler] }

func (p *peerHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := p.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	http.Error(w, "this member is still starting", http.StatusServiceUnavailable)
}

// serve lets the server answer on the port.
func (m *member) serve() {
	h := etcdhttp.NewPeerHandler(m.etcd.GetLogger(), m.server)
	m.peers.Store(&h)
}

// Member is one of the machines that keep the store together.
type Member struct {
	ID   uint64
	Name string
	// Address is where the others reach it, HOST:PORT; empty for a member that was always alone.
	Address string
	// API is where it answers for Others, HOST:PORT; empty if it has not said so.
	API string
	// Joining says that it was admitted and has not started yet.
	Joining bool
	// Learner says that it has all data and does not vote.
	Learner bool
	Leader  bool
	Self    bool
	// Lost says that the leader does not hear from it. Only the leader knows.
	Lost bool
}

// The pauses between two attempts to join.
const (
	joinPause    = 100 * time.Millisecond
	maxJoinPause = 400 * time.Millisecond // when many join, each waits for the others
)

// ErrMember means that a machine cannot become a member, or cannot be removed, as long as others are what they are.
var ErrMember = errors.New("the members of the store cannot change so")

// peersFile is there from when the member has had peers: then it opens its port at each start.
func (s *Store) peersFile() string { return filepath.Join(s.cfg.Dir, peersName) }

const peersName = "peers"

// ForgetPeers has the store in dir, which nobody may have open, begin as a member alone that opens no port.
func ForgetPeers(dir string) error {
	if err := os.Remove(filepath.Join(dir, peersName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s *Store) hasPeers() bool {
	_, err := os.Stat(s.peersFile())
	return err == nil
}

func (s *Store) rememberPeers() error {
	return disk.WriteFile(s.peersFile(), []byte(s.cfg.Peers.Address+"\n"), 0o600)
}

// joiningMark is before the name of a member that was admitted, until it has started and says its name by itself. No node
// has a name with a #.
const joiningMark = "#"

// initialCluster lists members for etcd: their names do not matter, but this one's.
func (s *Store) initialCluster(addresses []string) string {
	self := s.cfg.Peers.url()
	out := []string{s.cfg.Name + "=" + self.String()}
	for i, a := range addresses {
		if u := peerURL(a); u != self {
			out = append(out, fmt.Sprintf("%s%d=%s", joiningMark, i, u.String()))
		}
	}
	return strings.Join(out, ",")
}

// readvertise tells the other members of this one's address if it has changed.
func (s *Store) readvertise(ctx context.Context) error {
	return s.do(ctx, func(ctx context.Context, m *member) error {
		if m.alone {
			return nil
		}
		want := s.cfg.Peers.url()
		self := m.server.Cluster().Member(m.server.MemberID())
		if self == nil || slices.Equal(self.PeerURLs, []string{want.String()}) {
			return nil
		}
		return m.advertise(ctx, want)
	})
}

func (m *member) advertise(ctx context.Context, at url.URL) error {
	err := m.reconfigure(ctx, func(ctx context.Context) error {
		_, err := m.server.UpdateMember(ctx, membership.Member{ID: m.server.MemberID(),
			RaftAttributes: membership.RaftAttributes{PeerURLs: []string{at.String()}}})
		return err
	})
	if err != nil {
		return fmt.Errorf("etcd's address: %w", err)
	}
	return nil
}

// expose opens the port for other members, if it is not open yet. The server restarts for it: requests wait for some
// tenths of a second.
func (s *Store) expose(ctx context.Context) error {
	if s.cfg.Peers == nil {
		return fmt.Errorf("%w: this store takes no other members", ErrMember)
	}
	m, release, err := s.use(ctx, time.Now().Add(patience))
	if err != nil {
		return err
	}
	alone := m.alone
	if alone {
		var try member
		if err = try.listen(s.cfg.Peers); err == nil { // before anything is changed
			try.close()
			err = m.advertise(ctx, s.cfg.Peers.url())
		}
		if err == nil {
			err = s.rememberPeers()
		}
	}
	release()
	if !alone || err != nil {
		return err
	}
	return s.restart()
}

// Members lists the members, by name.
func (s *Store) Members(ctx context.Context) ([]Member, error) {
	var out []Member
	err := s.do(ctx, func(ctx context.Context, m *member) error {
		if err := m.current(ctx); err != nil {
			return err
		}
		out = m.members()
		return nil
	})
	return out, err
}

// Known lists the members as this one knows them, which may be out of date. It also answers without a majority, and while
// the server restarts.
func (s *Store) Known() []Member {
	if m, release, restarted := s.running(); restarted == nil {
		defer release()
		return m.certain()
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.restarted != nil {
		return slices.Clone(s.before)
	}
	return s.member.members()
}

// certain are the members, and lost are only those that the leader has not heard from for some heartbeats: every now and
// then Raft forgets whom it has heard from, and finds out anew with the next one.
func (m *member) certain() []Member {
	out := m.members()
	if !slices.ContainsFunc(out, func(e Member) bool { return e.Lost }) {
		return out
	}
	select {
	case <-time.After(3 * peersTick * time.Millisecond):
	case <-m.ending:
	}
	still := m.lost()
	for i := range out {
		out[i].Lost = out[i].Lost && still[out[i].ID]
	}
	return out
}

// members are the members as this one knows them.
func (m *member) members() []Member {
	lost := m.lost()
	var out []Member
	for _, e := range m.server.Cluster().Members() {
		name, joining := strings.CutPrefix(e.Name, joiningMark)
		out = append(out, Member{ID: uint64(e.ID), Name: name, Joining: joining, Address: addressOf(e.PeerURLs), API: addressOf(e.ClientURLs), Learner: e.IsLearner,
			Leader: e.ID == m.server.Leader(), Self: e.ID == m.server.MemberID(), Lost: lost[uint64(e.ID)]})
	}
	slices.SortFunc(out, func(a, b Member) int { return strings.Compare(a.Name+a.Address, b.Name+b.Address) })
	return out
}

// lost are the members that the leader does not hear from; nil on another member.
func (m *member) lost() map[uint64]bool {
	st, ok := raftStatus()
	if !ok || st.ID != uint64(m.server.MemberID()) {
		return nil
	}
	out := map[uint64]bool{}
	for id, p := range st.Progress {
		out[id] = !p.RecentActive && id != st.ID
	}
	return out
}

func addressOf(urls []string) string {
	for _, s := range urls {
		if u, err := url.Parse(s); err == nil && u.Scheme == "https" {
			return u.Host
		}
	}
	return ""
}

// Admit lets the member with a name and an address join, as one that does not vote yet, and returns the addresses of
// all members. It may be repeated. A member that had both before is replaced, because who asks has lost its data. Only the
// leader does it, one after another, so that of two machines with one name the second is refused; on another member it
// fails with store.ErrUnavailable.
func (s *Store) Admit(ctx context.Context, name, address string) ([]string, error) {
	s.admitting.Lock()
	defer s.admitting.Unlock()
	if err := s.expose(ctx); err != nil {
		return nil, err
	}
	var out []string
	err := s.do(ctx, func(ctx context.Context, m *member) (err error) {
		if err := m.current(ctx); err != nil {
			return err
		}
		if m.server.Leader() != m.server.MemberID() {
			return etcderrors.ErrNotLeader
		}
		out, err = m.admit(ctx, name, address)
		return err
	})
	return out, err
}

func (m *member) admit(ctx context.Context, name, address string) ([]string, error) {
	admitted := false
	for _, have := range m.members() {
		switch {
		case have.Address != address && have.Name == name:
			return nil, fmt.Errorf("%w: %s is the name of the member at %s: choose another --node-name, or remove that member "+
				"with \"minik8sd ctl etcd remove %s\" if it is gone for good", ErrMember, name, have.Address, name)
		case have.Address != address:
			continue
		case have.Self:
			return nil, fmt.Errorf("%w: %s is the address of the member that was asked", ErrMember, address)
		case have.Joining && have.Name == name:
			admitted = true
			continue
		case have.Name != name && !have.Joining:
			return nil, fmt.Errorf("%w: %s is the address of the member %s: choose another --node-ip or --etcd-port, or remove that "+
				"member with \"minik8sd ctl etcd remove %s\" if it is gone for good", ErrMember, address, have.Name, have.Name)
		}
		if err := m.remove(ctx, have.ID); err != nil {
			return nil, fmt.Errorf("the member that was at %s before cannot be removed: %w", address, err)
		}
	}
	if !admitted {
		urls, err := types.NewURLs([]string{"https://" + address})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMember, err)
		}
		// etcd makes a member's id of its address and a second. One that joins, leaves and joins again within a second needs
		// another one: an id that was removed is never taken again.
		second := time.Now()
		err = m.reconfigure(ctx, func(ctx context.Context) error {
			_, err := m.server.AddMember(ctx, *membership.NewMemberAsLearner(joiningMark+name, urls, "", &second))
			for errors.Is(err, membership.ErrIDRemoved) && ctx.Err() == nil {
				second = second.Add(time.Second)
				_, err = m.server.AddMember(ctx, *membership.NewMemberAsLearner(joiningMark+name, urls, "", &second))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var out []string
	for _, have := range m.members() {
		out = append(out, have.Address)
	}
	return out, nil
}

// Remove removes a member for good: it ends, and can join again only without its data. Only the leader knows whether those
// who stay are enough, so it alone does it; on another member it fails with store.ErrUnavailable.
func (s *Store) Remove(ctx context.Context, id uint64) error {
	err := s.do(ctx, func(ctx context.Context, m *member) error {
		if err := m.current(ctx); err != nil {
			return err
		}
		if len(m.server.Cluster().Members()) == 1 {
			return fmt.Errorf("%w: it is the only one", ErrMember)
		}
		if m.server.Leader() != m.server.MemberID() {
			return etcderrors.ErrNotLeader
		}
		if !canSpare(m.certain(), id) {
			return errNeeded
		}
		return m.remove(ctx, id)
	})
	if errors.Is(err, etcderrors.ErrUnhealthy) || errors.Is(err, etcderrors.ErrNotEnoughStartedMembers) {
		return errNeeded
	}
	return err
}

var errNeeded = fmt.Errorf("%w: without it too few of those that vote would be up to agree on anything", ErrMember)

// canSpare reports whether a majority of the voters is up when a member is gone. etcd's own check takes one whose
// connection has just broken for one that is lost already.
func canSpare(members []Member, id uint64) bool {
	voters, up := 0, 0
	for _, m := range members {
		if m.Learner || m.ID == id {
			continue
		}
		voters++
		if !m.Lost {
			up++
		}
	}
	return up > voters/2
}

// remove removes a member; it is no error if an earlier attempt has.
func (m *member) remove(ctx context.Context, id uint64) error {
	err := m.reconfigure(ctx, func(ctx context.Context) error {
		_, err := m.server.RemoveMember(ctx, id)
		return err
	})
	if errors.Is(err, membership.ErrIDNotFound) || errors.Is(err, membership.ErrIDRemoved) {
		return nil
	}
	return err
}

// changeLimit is how long one change of the members may take. Raft makes one at a time, and drops another that is
// proposed meanwhile without an answer.
const changeLimit = time.Second

// reconfigure changes the members. When the answer does not come in time, the error is one after which do tries again.
func (m *member) reconfigure(ctx context.Context, change func(context.Context) error) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, changeLimit)
	defer cancel()
	return change(ctx)
}
