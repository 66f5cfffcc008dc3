package containerd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	nl "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/cri"
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
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, text)
			c.Close()
		}
	}()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

func TestPodsTalkBehindAFirewall(t *testing.T) {
	b := newBench(t)
	api, other := serve(t, "api\n"), serve(t, "other\n")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b.cfg.NodePorts = []uint16{api}
	b.open()
	server := b.sandboxConfig("server")
	server.HostPorts = []cri.HostPort{{HostPort: 30080, ContainerPort: 80, Protocol: "TCP"}}
	s, err := b.EnsureSandbox(b.ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.containerConfig("server", "c")
	cfg.Image = "minik8s/hello"
	b.start(cfg)
	pod := s.Addresses[0].String()
	b.waitFor(pod+":80", "/", "server\n")

	// It comes, goes, and comes back, as with a restart of the service.
	for i := range 2 {
		flushRuleset(t)
		firewall(t)
		b.waitFor(pod+":80", "/", "server\n") // a probe of the kubelet's
		b.waitFor("127.0.0.1:30080", "/", "server\n")
		eventually(t, "both filters accept", func() error {
			if n := b.ourRules(t); n < 14 {
				return fmt.Errorf("%d rules", n)
			}
			return nil
		})
		try := fmt.Sprintf("wget -qO- http://%s/; wget -qO- http://192.0.2.1:30080/; nc -w 5 192.0.2.1 %d </dev/null; nc -w 1 192.0.2.1 %d </dev/null 2>/dev/null; ping -c 1 -W 5 169.254.1.1 >/dev/null && echo gateway", pod, api, other)
		id := b.up(fmt.Sprint("client", i), "sh", "-c", try)
		b.waitExit(id)
		if got, want := b.log(id), "server\nserver\napi\ngateway\n"; got != want {
			t.Errorf("behind a firewall a pod got %q, want %q", got, want)
		}
	}
	if list := b.NetworkTrouble(); len(list) > 0 {
		t.Errorf("in the way: %q", list)
	}
	if err := b.Uninstall(b.ctx); err != nil {
		t.Error(err)
	}
	if n := b.ourRules(t); n != 0 {
		t.Errorf("%d rules of ours are left in the filters of others", n)
	}
}

// A table that belongs to somebody else for good is named.
func TestAFilterThatCannotBeOpenedIsNamed(t *testing.T) {
	b := newBench(t)
	owner := ownedTable(t)
	defer owner.Close()
	eventually(t, "the table is named", func() error {
		if list := b.NetworkTrouble(); len(list) != 1 || !strings.HasPrefix(list[0], "table inet owned chain fw, policy drop") {
			return fmt.Errorf("%q", list)
		}
		return nil
	})
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the table is forgotten", func() error {
		if list := b.NetworkTrouble(); len(list) > 0 {
			return fmt.Errorf("%q", list)
		}
		return nil
	})
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
func (b *bench) ourRules(t *testing.T) (n int) {
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
	b := newBench(t)
	server := b.sandboxConfig("server")
	server.HostPorts = []cri.HostPort{{HostPort: 30080, ContainerPort: 80, Protocol: "TCP"}}
	if _, err := b.EnsureSandbox(b.ctx, server); err != nil {
		t.Fatal(err)
	}
	cfg := b.containerConfig("server", "c")
	cfg.Image = "minik8s/hello"
	b.start(cfg)
	b.waitFor("192.0.2.1:30080", "/", "server\n")
	flushRuleset(t)
	began := time.Now()
	b.waitFor("192.0.2.1:30080", "/", "server\n")
	t.Log("flushed to whole again:", time.Since(began))
	if data, err := os.ReadFile("/proc/sys/net/ipv4/conf/all/route_localnet"); err != nil || string(data) != "0\n" {
		t.Errorf("route_localnet: %q, %v", data, err)
	}
}

// inPod calls f on a thread that is in a pod's network.
func (b *bench) inPod(uid string, f func() error) {
	b.t.Helper()
	if err := inNamespaces(b.slotDir(b.record(uid).Slot.ID), []string{"net"}, f); err != nil {
		b.t.Fatal(err)
	}
}

// A pod has no say in the host's network, and cannot speak for others.
func TestAPodCannotLie(t *testing.T) {
	b := newBench(t)
	s, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("liar"))
	if err != nil {
		t.Fatal(err)
	}
	link := b.net.LinkName(b.record("uid-liar").Slot.ID)
	for key, want := range map[string]string{"ipv6/conf/" + link + "/accept_ra": "0\n", "ipv6/conf/" + link + "/autoconf": "0\n",
		"ipv6/conf/" + link + "/disable_ipv6": "1\n", "ipv4/conf/" + link + "/rp_filter": "1\n", "ipv4/conf/" + link + "/route_localnet": "0\n"} {
		if got, err := os.ReadFile("/proc/sys/net/" + key); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", key, got, err)
		}
	}
	host, err := net.ListenPacket("udp4", "192.0.2.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	// What is dropped by which of the two is not told apart; each has to do by itself.
	for _, only := range []string{"rp_filter", "the rule"} {
		if only == "the rule" {
			if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+link+"/rp_filter", []byte("0"), 0); err != nil {
				t.Fatal(err)
			}
		} else {
			flushRuleset(t)
		}
		b.inPod("uid-liar", func() error {
			eth0, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			lie, err := netlink.ParseAddr("10.88.7.7/32")
			if err != nil {
				return err
			}
			if err := netlink.AddrReplace(eth0, lie); err != nil {
				return err
			}
			for from, text := range map[string]string{"10.88.7.7": "lie", s.Addresses[0].String(): "truth"} {
				c, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(from)}, host.LocalAddr().(*net.UDPAddr))
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
		_ = host.SetReadDeadline(time.Now().Add(10 * time.Second))
		for i := range 2 {
			n, from, err := host.ReadFrom(buf)
			if i == 0 && (err != nil || string(buf[:n]) != "truth") {
				t.Errorf("by %s: %q from %v, %v", only, buf[:n], from, err)
			}
			if i == 1 && err == nil {
				t.Errorf("by %s: more than the truth: %q from %v", only, buf[:n], from)
			}
			_ = host.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		}
		eventually(t, "the rules are back", func() error {
			chains, err := (&nftables.Conn{}).ListChainsOfTableFamily(nftables.TableFamilyIPv4)
			if err == nil && len(chains) == 0 {
				err = errors.New("none")
			}
			return err
		})
	}
}

// A sender that never stops finds the pod that has the port now, not the one that is gone, by every way.
func TestUDPFollowsThePod(t *testing.T) {
	b := newBench(t)
	echo := func(name string) {
		cfg := b.sandboxConfig(name)
		cfg.HostPorts = []cri.HostPort{{HostPort: 30053, ContainerPort: 53, Protocol: "UDP"}}
		if _, err := b.EnsureSandbox(b.ctx, cfg); err != nil {
			t.Fatal(err)
		}
		b.inPod(cfg.PodUID, func() error {
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
			eventually(t, at+" answers as "+want, func() error {
				_, _ = c.Write([]byte("who"))
				_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
				n, err := c.Read(buf)
				if err == nil && string(buf[:n]) != want {
					err = fmt.Errorf("%q", buf[:n])
				}
				return err
			})
		}
	}
	for _, c := range clients { // before there is anybody: a flow that leads nowhere
		_, _ = c.Write([]byte("who"))
	}
	echo("one")
	ask("one")
	if err := b.removePod(b.ctx, "uid-one"); err != nil {
		t.Fatal(err)
	}
	echo("two")
	ask("two")
}
