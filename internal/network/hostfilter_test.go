package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	nl "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/network/host"
)

// firewall is what a host filters with: the tables of iptables and one that somebody has written, all of
// which drop what they do not know.
func firewall(t *testing.T) {
	t.Helper()
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	drop := nftables.ChainPolicyDrop
	fromLo := append(byLink("lo"), &expr.Verdict{Kind: expr.VerdictAccept})
	for _, table := range []*nftables.Table{{Family: nftables.TableFamilyIPv4, Name: "filter"}, {Family: nftables.TableFamilyINet, Name: "theirs"}} {
		c.AddTable(table)
		for name, hook := range map[string]*nftables.ChainHook{"INPUT": nftables.ChainHookInput, "FORWARD": nftables.ChainHookForward} {
			if table.Name == "theirs" {
				name = strings.ToLower(name)
			}
			chain := c.AddChain(&nftables.Chain{Table: table, Name: name, Type: nftables.ChainTypeFilter, Hooknum: hook,
				Priority: nftables.ChainPriorityFilter, Policy: &drop})
			c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: fromLo})
		}
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { flushRuleset(t) })
}

func byLink(name string) []expr.Any {
	data := make([]byte, unix.IFNAMSIZ)
	copy(data, name)
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: data}}
}

// flushRuleset is what a restart of Debian's nftables service does first.
func flushRuleset(t *testing.T) {
	t.Helper()
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	c.FlushRuleset()
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
}

// serve answers connections to a port of the host.
func serve(t *testing.T, text string) (port uint16) {
	t.Helper()
	for port = 20000; ; port++ {
		if err := listen(t, fmt.Sprintf("0.0.0.0:%d", port), text, nil); err == nil {
			return port
		} else if port > 21000 {
			t.Fatal(err)
		}
	}
}

// hostPort80 forwards a port of the host to port 80 of a pod.
func (p *pod) hostPort80(port int32) {
	p.t.Helper()
	if err := p.n.AddHostPorts(p.id, p.addr, []corev1.ContainerPort{{HostPort: port, ContainerPort: 80}}); err != nil {
		p.t.Fatal(err)
	}
}

func TestPodsTalkBehindAFirewall(t *testing.T) {
	api, other := serve(t, "api"), serve(t, "other")
	n := running(t, api)
	server := newPod(t, n, "server")
	server.serve(80, "server")
	server.hostPort80(30080)
	at := server.addr.String() + ":80"
	waitFor(t, at, "server")

	// It comes, goes, and comes back, as with a restart of the service.
	for i := range 2 {
		flushRuleset(t)
		firewall(t)
		waitFor(t, at, "server") // a probe of the kubelet's
		waitFor(t, "127.0.0.1:30080", "server")
		eventually(t, "both filters accept", func() bool { return ourRules(t) >= 14 })
		client := newPod(t, n, fmt.Sprint("client", i))
		for addr, want := range map[string]string{at: "server", hostAddr + ":30080": "server", fmt.Sprintf("%s:%d", hostAddr, api): "api"} {
			if got := client.get(addr, 5*time.Second); got != want {
				t.Errorf("behind a firewall a pod got %q of %s, want %q", got, addr, want)
			}
		}
		if got := client.get(fmt.Sprintf("%s:%d", hostAddr, other), time.Second); got != "" {
			t.Errorf("a pod reaches a port of the host that the filter closes: %q", got)
		}
		if !client.ping(host.Gateway.String()) {
			t.Error("the gateway does not answer a ping")
		}
	}
	if list := n.Trouble().Stopped; len(list) > 0 {
		t.Errorf("in the way: %q", list)
	}
	if err := n.Teardown(t.Context()); err != nil {
		t.Error(err)
	}
	if n := ourRules(t); n != 0 {
		t.Errorf("%d rules of ours are left in the filters of others", n)
	}
}

// Rules that stop every connection of pods, though not every packet, are overruled; a rule for one port is assumed to
// be intended, and is named.
func TestNarrowRulesOfOthers(t *testing.T) {
	n := running(t)
	server := newPod(t, n, "server")
	server.serve(80, "server")
	client := newPod(t, n, "client")
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { flushRuleset(t) })
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "theirs"})
	chain := c.AddChain(&nftables.Chain{Table: table, Name: "forward", Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookForward,
		Priority: nftables.ChainPriorityFilter})
	port := []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, &expr.Cmp{Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Register: 1, Data: []byte{0, 25}}, &expr.Verdict{Kind: expr.VerdictDrop}}
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: port})
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rule for a port is named", func() bool {
		trouble := n.Trouble()
		return len(trouble.Stopped) == 0 && len(trouble.Partly) == 1 && strings.HasPrefix(trouble.Partly[0], "table inet theirs chain forward, rule with handle")
	})
	fresh := []expr.Any{&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binary.NativeEndian.AppendUint32(nil, expr.CtStateBitNEW), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)}, &expr.Verdict{Kind: expr.VerdictDrop}}
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: fresh})
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pods are let through", func() bool {
		rules, err := c.GetRules(table, chain)
		return err == nil && len(rules) == 4
	})
	if got := client.get(server.addr.String()+":80", 5*time.Second); got != "server" {
		t.Errorf("got %q", got)
	}
}

// A table that belongs to somebody else for good is named.
func TestAFilterThatCannotBeOpenedIsNamed(t *testing.T) {
	n := running(t)
	owner := ownedTable(t)
	defer owner.Close()
	eventually(t, "the table is named", func() bool {
		list := n.Trouble().Stopped
		return len(list) == 1 && strings.HasPrefix(list[0], "table inet owned chain fw, policy drop")
	})
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the table is forgotten", func() bool { return len(n.Trouble().Stopped) == 0 })
}

// ownedTable makes a table that nobody else may change until the socket is closed, with which it goes, and
// a chain in it that drops what is forwarded.
func ownedTable(t *testing.T) io.Closer {
	t.Helper()
	c, err := nl.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		t.Fatal(err)
	}
	const owned = 1 << 1 // NFT_TABLE_F_OWNER
	be := binary.BigEndian
	message := func(kind nl.HeaderType, family byte, resource uint16, fill func(*nl.AttributeEncoder)) nl.Message {
		e := nl.NewAttributeEncoder()
		e.ByteOrder = be
		fill(e)
		data, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return nl.Message{Header: nl.Header{Type: kind, Flags: nl.Request | nl.Create},
			Data: append(be.AppendUint16([]byte{family, 0}, resource), data...)}
	}
	none := func(*nl.AttributeEncoder) {}
	const nft = unix.NFNL_SUBSYS_NFTABLES
	_, err = c.SendMessages([]nl.Message{
		message(unix.NFNL_MSG_BATCH_BEGIN, 0, nft, none),
		message(nft<<8|unix.NFT_MSG_NEWTABLE, unix.NFPROTO_INET, 0, func(e *nl.AttributeEncoder) {
			e.String(unix.NFTA_TABLE_NAME, "owned")
			e.Uint32(unix.NFTA_TABLE_FLAGS, owned)
		}),
		message(nft<<8|unix.NFT_MSG_NEWCHAIN, unix.NFPROTO_INET, 0, func(e *nl.AttributeEncoder) {
			e.String(unix.NFTA_CHAIN_TABLE, "owned")
			e.String(unix.NFTA_CHAIN_NAME, "fw")
			e.Nested(unix.NFTA_CHAIN_HOOK, func(h *nl.AttributeEncoder) error {
				h.ByteOrder = be
				h.Uint32(unix.NFTA_HOOK_HOOKNUM, unix.NF_INET_FORWARD)
				h.Uint32(unix.NFTA_HOOK_PRIORITY, 0)
				return nil
			})
			e.Uint32(unix.NFTA_CHAIN_POLICY, uint32(nftables.ChainPolicyDrop))
			e.String(unix.NFTA_CHAIN_TYPE, "filter")
		}),
		message(unix.NFNL_MSG_BATCH_END, 0, nft, none),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ourRules counts the rules that accept addresses of pods in the filters of others.
func ourRules(t *testing.T) (n int) {
	t.Helper()
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	chains, err := c.ListChains()
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range chains {
		if ch.Table.Name != "filter" && ch.Table.Name != "theirs" {
			continue
		}
		rules, err := c.GetRules(ch.Table, ch)
		if err != nil {
			t.Fatal(err)
		}
		n += len(rules) - 1 // that for lo
	}
	return n
}

func TestFlushedRulesOfPodsComeBack(t *testing.T) {
	n := running(t)
	server := newPod(t, n, "server")
	server.serve(80, "server")
	server.hostPort80(30080)
	waitFor(t, hostAddr+":30080", "server")
	flushRuleset(t)
	began := time.Now()
	waitFor(t, hostAddr+":30080", "server")
	t.Log("flushed to whole again:", time.Since(began))
	if data, err := os.ReadFile("/proc/sys/net/ipv4/conf/all/route_localnet"); err != nil || string(data) != "0\n" {
		t.Errorf("route_localnet: %q, %v", data, err)
	}
}

// A pod cannot change the host's network, and cannot use addresses of others.
func TestAPodCannotLie(t *testing.T) {
	n := running(t)
	liar := newPod(t, n, "liar")
	link := n.LinkName(liar.id)
	for key, want := range map[string]string{"ipv6/conf/" + link + "/accept_ra": "0\n", "ipv6/conf/" + link + "/autoconf": "0\n",
		"ipv6/conf/" + link + "/disable_ipv6": "1\n", "ipv4/conf/" + link + "/rp_filter": "1\n", "ipv4/conf/" + link + "/route_localnet": "0\n"} {
		if got, err := os.ReadFile("/proc/sys/net/" + key); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", key, got, err)
		}
	}
	server, err := net.ListenPacket("udp4", hostAddr+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	// What is dropped by which of the two is not told apart; each has to do by itself.
	for _, only := range []string{"rp_filter", "the rule"} {
		if only == "the rule" {
			if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+link+"/rp_filter", []byte("0"), 0); err != nil {
				t.Fatal(err)
			}
		} else {
			flushRuleset(t)
		}
		liar.inside(func() error {
			eth0, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			lie, err := netlink.ParseAddr("10.244.0.77/32")
			if err != nil {
				return err
			}
			if err := netlink.AddrReplace(eth0, lie); err != nil {
				return err
			}
			for from, text := range map[string]string{"10.244.0.77": "lie", liar.addr.String(): "truth"} {
				c, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(from)}, server.LocalAddr().(*net.UDPAddr))
				if err != nil {
					return err
				}
				_, err = c.Write([]byte(text))
				if err := errors.Join(err, c.Close()); err != nil {
					return err
				}
			}
			return nil
		})
		buf := make([]byte, 10)
		_ = server.SetReadDeadline(time.Now().Add(10 * time.Second))
		for i := range 2 {
			n, from, err := server.ReadFrom(buf)
			if i == 0 && (err != nil || string(buf[:n]) != "truth") {
				t.Errorf("by %s: %q from %v, %v", only, buf[:n], from, err)
			}
			if i == 1 && err == nil {
				t.Errorf("by %s: more than the truth: %q from %v", only, buf[:n], from)
			}
			_ = server.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		}
		eventually(t, "the rules are back", func() bool {
			chains, err := (&nftables.Conn{}).ListChainsOfTableFamily(nftables.TableFamilyIPv4)
			return err == nil && len(chains) > 0
		})
	}
}

// A sender that never stops reaches the pod that has the port now, not the removed one, on every path.
func TestUDPFollowsThePod(t *testing.T) {
	n := running(t)
	echo := func(name string) *pod {
		p := newPod(t, n, name)
		if err := n.AddHostPorts(p.id, p.addr, []corev1.ContainerPort{{HostPort: 30053, ContainerPort: 53, Protocol: "UDP"}}); err != nil {
			t.Fatal(err)
		}
		p.inside(func() error {
			c, err := net.ListenPacket("udp4", "0.0.0.0:53")
			if err != nil {
				return err
			}
			t.Cleanup(func() { c.Close() })
			go func() {
				buf := make([]byte, 10)
				for {
					_, from, err := c.ReadFrom(buf)
					if err != nil {
						return
					}
					_, _ = c.WriteTo([]byte(name), from)
				}
			}()
			return nil
		})
		return p
	}
	clients := map[string]net.Conn{}
	for _, at := range []string{"192.0.2.1:30053", "127.0.0.1:30053"} {
		c, err := net.Dial("udp4", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients[at] = c
	}
	ask := func(want string) {
		t.Helper()
		for at, c := range clients {
			buf := make([]byte, 10)
			eventually(t, at+" answers as "+want, func() bool {
				_, _ = c.Write([]byte("who"))
				_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
				n, err := c.Read(buf)
				return err == nil && string(buf[:n]) == want
			})
		}
	}
	for _, c := range clients { // before there is a pod: a flow to nowhere
		_, _ = c.Write([]byte("who"))
	}
	one := echo("one")
	ask("one")
	one.remove()
	echo("two")
	ask("two")
}

// What leaves for the world comes from the node's address.
func TestEgressIsMasqueraded(t *testing.T) {
	n := running(t)
	from := make(chan netip.Addr, 1)
	wire, err := n.host.LinkByName("wire0")
	if err != nil {
		t.Fatal(err)
	}
	world := &pod{t: t, n: n}
	err = onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		world.ns, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer world.ns.Close()
	if err := n.host.LinkSetNsFd(wire, int(world.ns.Fd())); err != nil {
		t.Fatal(err)
	}
	// The link is moved back at the end, for the tests that follow.
	defer func() {
		world.inside(func() error {
			link, err := netlink.LinkByName("wire0")
			if err != nil {
				return err
			}
			return netlink.LinkSetNsPid(link, os.Getpid())
		})
		if link, err := n.host.LinkByName("wire0"); err != nil || n.host.LinkSetUp(link) != nil {
			t.Error("the link did not come home", err)
		}
	}()
	world.inside(func() error {
		link, err := netlink.LinkByName("wire0")
		if err != nil {
			return err
		}
		addr, err := netlink.ParseAddr("192.0.2.254/24")
		if err != nil {
			return err
		}
		return errors.Join(listen(t, "0.0.0.0:8080", "world", from), netlink.AddrAdd(link, addr), netlink.LinkSetUp(link))
	})
	if got := newPod(t, n, "client").get("192.0.2.254:8080", 5*time.Second); got != "world" {
		t.Fatalf("the world is not reached: %q", got)
	}
	if a := <-from; a.String() != hostAddr {
		t.Errorf("the world sees %s, want the node's %s", a, hostAddr)
	}
}
