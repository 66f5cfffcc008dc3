package balancer

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"minik8s/internal/machine"
)

// TestMain gives the tests a network of their own, whose links they may cut.
func TestMain(m *testing.M) { machine.Run(m.Run) }

// server answers each line with its name and the line, until it is killed.
type server struct {
	t       *testing.T
	address string
	l       net.Listener

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newServer(t *testing.T, address string) *server {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, address: l.Addr().String(), l: l, conns: map[net.Conn]bool{}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = true
			s.mu.Unlock()
			go s.answer(c)
		}
	}()
	t.Cleanup(s.kill)
	return s
}

func (s *server) answer(c net.Conn) {
	defer func() {
		c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	lines := bufio.NewReader(c)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		if _, err := io.WriteString(c, s.address+" "+line); err != nil {
			return
		}
	}
}

// kill ends the server with its connections, as SIGKILL does.
func (s *server) kill() {
	s.l.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
}

func (s *server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// mute is an address where connections are accepted by nobody: the queue of its listener is full.
func mute(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
	for range 10 {
		c, err := net.DialTimeout("tcp", address, 100*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("its queue takes everything")
	return ""
}

// frozen is the address of a server that is stopped: the kernel accepts connections, and nobody answers.
func frozen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// refused is an address where nobody listens.
func refused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return l.Addr().String()
}

// bed is a balancer that serves.
type bed struct {
	*Balancer
	t       *testing.T
	address string
	log     bytes.Buffer
	stop    func()
}

// serve starts a balancer, whose first turn is the first upstream's. At the end of the test nothing of it may be left.
func serve(t *testing.T, resort string, upstreams ...string) *bed {
	t.Helper()
	b := &bed{t: t}
	b.Balancer = New(Config{Upstreams: upstreams, Resort: resort, Log: slog.New(slog.NewTextHandler(&b.log, nil))})
	b.turn = 0
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	b.address = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- b.Serve(ctx, l) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, u := range b.all() {
			if len(u.relays) > 0 {
				t.Errorf("%d connections to %s are left", len(u.relays), u.address)
			}
		}
		for _, what := range []string{"(*Balancer).Serve", "(*Balancer).Relay", "(*relay).upload", "(*relay).download", "dialTCP", "DialContext"} {
			if n := goroutines(what); n > 0 {
				t.Errorf("%d goroutines are left in %s", n, what)
			}
		}
	})
	t.Cleanup(b.stop)
	return b
}

// goroutines counts those that are in a function.
func goroutines(function string) int {
	buf := make([]byte, 4<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), function+"(")
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

type conn struct {
	*net.TCPConn
	lines *bufio.Reader
	t     *testing.T
}

func (b *bed) connect() *conn {
	b.t.Helper()
	c, err := net.Dial("tcp", b.address)
	if err != nil {
		b.t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(30 * time.Second))
	return &conn{c.(*net.TCPConn), bufio.NewReader(c), b.t}
}

// ended waits for the end of the connection. what says what is wrong if it does not come, or if there is data.
func (c *conn) ended(what string) {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(15 * time.Second))
	if _, err := c.lines.ReadByte(); err == nil || os.IsTimeout(err) {
		c.t.Errorf("%s: %v", what, err)
	}
}

// ask sends a line and returns who has answered.
func (c *conn) ask(line string) (string, error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	got, err := c.lines.ReadString('\n')
	if err != nil {
		return "", err
	}
	who, said, _ := strings.Cut(strings.TrimSuffix(got, "\n"), " ")
	if said != line {
		return "", fmt.Errorf("sent %q, and %q came back", line, got)
	}
	return who, nil
}

// who is the upstream of a new connection.
func (b *bed) who() string {
	b.t.Helper()
	c := b.connect()
	defer c.Close()
	who, err := c.ask("hello")
	if err != nil {
		b.t.Fatal(err)
	}
	return who
}

func (b *bed) expect(want string) {
	b.t.Helper()
	if got := b.who(); got != want {
		b.t.Errorf("it went to %s, want %s", got, want)
	}
}

func TestOrder(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, x := range map[string]struct {
		turn   int
		failed map[string]time.Time
		resort string
		want   string
	}{
		"from the one whose turn it is": {1, nil, "", "b c a"},
		"the last resort is the last":   {2, nil, "r", "c a b r"},
		"unless it is one of them":      {0, nil, "b", "a b c"},
		"who has failed comes later":    {0, map[string]time.Time{"a": ago(time.Second), "b": ago(2 * time.Second)}, "r", "c b a r"},
		"for a while":                   {0, map[string]time.Time{"a": ago(avoidFor), "r": ago(time.Second)}, "r", "a b c r"},
		"all have":                      {0, map[string]time.Time{"a": ago(1), "b": ago(2), "c": ago(3), "r": ago(4)}, "r", "c b a r"},
	} {
		var list []*upstream
		var resort *upstream
		for _, a := range []string{"a", "b", "c", "r"} {
			u := newUpstream(a)
			u.failed = x.failed[a]
			if a == x.resort {
				resort = u
			}
			if a != "r" {
				list = append(list, u)
			}
		}
		var got []string
		for _, u := range order(list, x.turn, resort, now) {
			got = append(got, u.address)
		}
		if strings.Join(got, " ") != x.want {
			t.Errorf("%s: %v, want %s", name, got, x.want)
		}
	}
	if got := order(nil, 0, nil, now); len(got) != 0 {
		t.Error(got)
	}
}

// Connections stay with one upstream as long as it answers, then all go to the next.
func TestKilledUpstream(t *testing.T) {
	one, two, three := newServer(t, "127.0.0.1:0"), newServer(t, "127.0.0.1:0"), newServer(t, "127.0.0.1:0")
	b := serve(t, "", one.address, two.address, three.address)
	for range 5 {
		b.expect(one.address)
	}
	c := b.connect()
	defer c.Close()
	if _, err := c.ask("x"); err != nil {
		t.Fatal(err)
	}
	one.kill()
	c.ended("the connection outlived its upstream")
	for range 3 {
		b.expect(two.address)
	}
	newServer(t, one.address) // it is back: nobody moves
	b.expect(two.address)
	two.kill()
	b.expect(three.address)
}

// An upstream that is said to be of no use loses its connections, and the next is used; one alone is kept.
func TestAvoid(t *testing.T) {
	one, two := newServer(t, "127.0.0.1:0"), newServer(t, "127.0.0.1:0")
	b := serve(t, "", one.address, two.address)
	b.expect(one.address)
	c := b.connect()
	defer c.Close()
	if _, err := c.ask("x"); err != nil {
		t.Fatal(err)
	}
	b.Avoid()
	c.ended("the connection stayed")
	for range 3 {
		b.expect(two.address)
	}
	b.Set([]string{two.address})
	kept := b.connect()
	defer kept.Close()
	if _, err := kept.ask("x"); err != nil {
		t.Fatal(err)
	}
	b.Avoid()
	if _, err := kept.ask("y"); err != nil {
		t.Errorf("the only upstream was left: %v", err)
	}
}

// When all are said to be of no use, one after the other, the last one is kept.
func TestAvoidAll(t *testing.T) {
	one, two, three := newServer(t, "127.0.0.1:0"), newServer(t, "127.0.0.1:0"), newServer(t, "127.0.0.1:0")
	b := serve(t, "", one.address, two.address, three.address)
	for _, s := range []*server{one, two, three} {
		b.expect(s.address)
		b.Avoid()
	}
	c := b.connect()
	defer c.Close()
	for range 3 {
		if who, err := c.ask("x"); err != nil || who != three.address {
			t.Errorf("%s answers, %v", who, err)
		}
		b.Avoid()
	}
}

// Those that do not answer do not keep a client waiting.
func TestUpstreamsThatDoNotAnswer(t *testing.T) {
	live := newServer(t, "127.0.0.1:0")
	b := serve(t, "", mute(t), refused(t), mute(t), live.address)
	b.expect(live.address)
	for _, u := range b.list[1:2] {
		if u.failed.IsZero() {
			t.Error("nobody listens there, and it counts as well")
		}
	}
	b.expect(live.address)
}

// A server that is stopped accepts and does not answer. The client gives up; its next connection goes elsewhere.
func TestFrozenUpstream(t *testing.T) {
	live := newServer(t, "127.0.0.1:0")
	b := serve(t, "", frozen(t), live.address)
	c := b.connect()
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(dialTimeout + 100*time.Millisecond))
	if who, err := c.ask("hello"); err == nil {
		t.Fatal("it was answered by", who)
	}
	c.Close()
	eventually(t, "another is preferred", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return !b.list[0].failed.IsZero()
	})
	b.expect(live.address)
}

// The last resort is used while nobody else answers, and not longer.
func TestLastResort(t *testing.T) {
	resort, late := newServer(t, "127.0.0.1:0"), refused(t)
	b := serve(t, resort.address, late)
	b.expect(resort.address)
	c := b.connect()
	defer c.Close()
	if who, err := c.ask("hello"); err != nil || who != resort.address {
		t.Fatal(who, err)
	}
	other := newServer(t, "127.0.0.1:0")
	b.Set([]string{late, other.address})
	c.ended("the connection to the last resort has stayed")
	b.expect(other.address)
	b.Set(nil)
	d := b.connect()
	defer d.Close()
	for _, set := range [][]string{nil, {other.address}} { // the first set, for a client that was there before it
		b.Set(set)
		if who, err := d.ask("hello"); err != nil || who != resort.address {
			t.Fatal(set, who, err)
		}
	}
	b.expect(other.address)
}

// Without anybody connections end at once, and the log says so once, and why.
func TestNobodyAnswers(t *testing.T) {
	gone := refused(t)
	b := serve(t, "", gone)
	for range 3 {
		c := b.connect()
		if who, err := c.ask("hello"); err == nil {
			t.Error("answered by", who)
		}
		c.Close()
	}
	live := newServer(t, gone)
	b.expect(live.address)
	b.Set(nil)
	c := b.connect()
	defer c.Close()
	c.ended("an empty set has answered")
	b.stop()
	log := b.log.String()
	if strings.Count(log, "none of the upstreams") != 2 || strings.Count(log, "reached again") != 1 ||
		!strings.Contains(log, gone) || !strings.Contains(log, "connection refused") {
		t.Error(log)
	}
}

// Connections to those that leave the set end, the others do not notice, and nothing is lost by a Set that changes nothing.
func TestSet(t *testing.T) {
	one, two := newServer(t, "127.0.0.1:0"), newServer(t, "127.0.0.1:0")
	b := serve(t, "", one.address, two.address)
	c := b.connect()
	defer c.Close()
	for _, set := range [][]string{{one.address, two.address}, {two.address, one.address, one.address}, {one.address}, {two.address, one.address}} {
		b.Set(set)
		if who, err := c.ask("still"); err != nil || who != one.address {
			t.Fatalf("after %v: %s, %v", set, who, err)
		}
	}
	b.Set([]string{two.address})
	c.ended("the connection has stayed")
	b.expect(two.address)
	if got := b.Upstreams(); !slices.Equal(got, []string{two.address}) {
		t.Error(got)
	}
}

// The set changes while many clients are at work: each finds an upstream of the set again at once.
func TestSetUnderLoad(t *testing.T) {
	one, two := newServer(t, "127.0.0.1:0"), newServer(t, "127.0.0.1:0")
	b := serve(t, "", one.address)
	var clients sync.WaitGroup
	var answers, moves atomic.Int64
	var end atomic.Bool
	for range 20 {
		clients.Go(func() {
			c := b.connect()
			for !end.Load() {
				_, err := c.ask("x")
				if err == nil {
					answers.Add(1)
					continue
				}
				c.Close()
				c = b.connect()
				moves.Add(1)
			}
			c.Close()
		})
	}
	for i := range 100 {
		before := answers.Load()
		b.Set([]string{[]string{one.address, two.address}[i%2]})
		eventually(t, "answers go on", func() bool { return answers.Load() >= before+20 })
	}
	b.Set([]string{two.address})
	eventually(t, "no connection to the one that has left", func() bool { return one.connections() == 0 })
	end.Store(true)
	clients.Wait()
	if moves.Load() == 0 {
		t.Error("no client had to move")
	}
}

// The end of one direction is passed on, and what is under way in the other arrives.
func TestHalfClose(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const size = 4 << 20
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		got, err := io.ReadAll(c) // to the client's end
		fmt.Fprintf(c, "%d %v\n", len(got), err)
		c.Write(make([]byte, size))
	}()
	b := serve(t, "", l.Addr().String())
	c := b.connect()
	defer c.Close()
	if _, err := c.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	line, err := c.lines.ReadString('\n')
	if err != nil || line != fmt.Sprintf("%d <nil>\n", size) {
		t.Fatalf("%q, %v", line, err)
	}
	rest, err := io.ReadAll(c.lines)
	if err != nil || len(rest) != size {
		t.Errorf("%d bytes, %v", len(rest), err)
	}

	// And the other way round: a server that has said all may still hear.
	heard := make(chan string)
	l2, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l2.Close()
	go func() {
		c, err := l2.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(c, "all\n")
		c.(*net.TCPConn).CloseWrite()
		got, _ := io.ReadAll(c)
		heard <- string(got)
	}()
	b.Set([]string{l2.Addr().String()})
	d := b.connect()
	if got, err := io.ReadAll(d.lines); string(got) != "all\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	io.WriteString(d, "thanks")
	d.Close()
	if got := <-heard; got != "thanks" {
		t.Errorf("heard %q", got)
	}
}

// A hundred clients at once, the first upstream mute: each is served, by two goroutines.
func TestManyAtOnce(t *testing.T) {
	live := newServer(t, "127.0.0.1:0")
	b := serve(t, "", mute(t), live.address)
	var all sync.WaitGroup
	conns := make([]*conn, 100)
	for i := range conns {
		all.Go(func() {
			conns[i] = b.connect()
			if _, err := conns[i].ask(fmt.Sprint("I am ", i)); err != nil {
				t.Error(i, err)
			}
		})
	}
	all.Wait()
	count := func() int { return goroutines("(*relay).download") + goroutines("(*relay).upload") }
	if n := count(); n != 200 {
		t.Errorf("100 connections have %d goroutines, want 200", n)
	}
	for _, c := range conns {
		c.Close()
	}
	eventually(t, "the connections end", func() bool { return count() == 0 && live.connections() == 0 })
}

// A connection whose way is cut ends, also an idle one, and the next goes elsewhere.
func TestCutLink(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("to cut a link needs root, and it takes seconds to notice")
	}
	one, two := newServer(t, "127.0.0.1:0"), newServer(t, "127.0.0.1:0")
	b := serve(t, "", one.address, two.address)
	idle, busy := b.connect(), b.connect()
	defer idle.Close()
	defer busy.Close()
	for _, c := range []*conn{idle, busy} {
		if who, err := c.ask("hello"); err != nil || who != one.address {
			t.Fatal(who, err)
		}
	}
	_, port, err := net.SplitHostPort(one.address)
	if err != nil {
		t.Fatal(err)
	}
	nft(t, "add table ip cut; add chain ip cut in { type filter hook input priority 0; }; add rule ip cut in tcp dport "+port+" drop; add rule ip cut in tcp sport "+port+" drop")
	t.Cleanup(func() { nft(t, "delete table ip cut") })
	began := time.Now()
	io.WriteString(busy, "x\n")
	for name, c := range map[string]*conn{"busy": busy, "idle": idle} {
		c.ended("the " + name + " connection has stayed")
		t.Logf("the %s one ended after %s", name, time.Since(began).Round(10*time.Millisecond))
	}
	began = time.Now()
	b.expect(two.address)
	t.Logf("another answered after %s", time.Since(began).Round(time.Millisecond))
}

func nft(t *testing.T, rules string) {
	t.Helper()
	cmd := exec.Command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
