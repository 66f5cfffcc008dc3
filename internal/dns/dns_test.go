package dns

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/client/faulty"
	"minik8s/internal/client/local"
	"minik8s/internal/hostdns"
	"minik8s/internal/informer"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// bed is a DNS that answers on a port of loopback, of a cluster with a few Services.
type bed struct {
	t     *testing.T
	admin client.Interface
	at    string
	// outside are the machine's own servers.
	outside atomic.Pointer[[]netip.AddrPort]
	listed  chan struct{}
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, admin: local.New(registrytest.New(t), registry.System), listed: make(chan struct{})}
	b.outside.Store(&[]netip.AddrPort{})
	return b
}

// run starts it.
func (b *bed) run() {
	b.t.Helper()
	log := slog.New(slog.NewTextHandler(b.t.Output(), nil))
	services := informer.New[*corev1.Service](b.admin, api.Services, informer.Options{Log: log})
	endpoints := informer.New[*discoveryv1.EndpointSlice](b.admin, api.EndpointSlices, informer.Options{Log: log})
	s := New(Config{Domain: "cluster.local", Hold: func(netip.Addr) error { return nil }, Log: log}, services, endpoints,
		informer.New[*minik8s.DNS](b.admin, api.DNSes, informer.Options{Log: log}))
	s.forward.servers = func() []netip.AddrPort { return *b.outside.Load() } // they have other ports
	sockets, err := listen(netip.MustParseAddrPort("127.0.0.1:0"), s.handler)
	if err != nil {
		b.t.Fatal(err)
	}
	b.at = sockets.servers[0].PacketConn.LocalAddr().String()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx, sync.OnceFunc(func() { close(b.listed) })); err != nil {
			b.t.Error(err)
		}
	})
	b.t.Cleanup(func() {
		sockets.close()
		stop()
		running.Wait()
	})
	<-b.listed
}

func (b *bed) create(obj api.Object) {
	b.t.Helper()
	if _, err := b.admin.Create(b.t.Context(), obj, client.WriteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// ask returns the answer to one question by UDP.
func (b *bed) ask(name string, kind uint16) *dns.Msg {
	b.t.Helper()
	return b.exchange(new(dns.Client), new(dns.Msg).SetQuestion(dns.Fqdn(name), kind))
}

func (b *bed) exchange(c *dns.Client, q *dns.Msg) *dns.Msg {
	b.t.Helper()
	c.Timeout = 20 * time.Second
	m, _, err := c.Exchange(q, b.at)
	if err != nil {
		b.t.Fatalf("%v: %v", q.Question, err)
	}
	return m
}

// text is what an answer says, without times to live, in order.
func text(rrs []dns.RR) []string {
	out := []string{}
	for _, rr := range rrs {
		out = append(out, strings.ReplaceAll(strings.ReplaceAll(rr.String(), fmt.Sprintf("\t%d\tIN\t", rr.Header().Ttl), " "), "\t", " "))
	}
	slices.Sort(out)
	return out
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

func tcp(name string, port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: port, Protocol: corev1.ProtocolTCP}
}

func endpoint(ready bool, hostname string, addrs ...string) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: addrs, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}
	if hostname != "" {
		e.Hostname = &hostname
	}
	return e
}

func slice(name, service string, ports []discoveryv1.EndpointPort, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: meta(name), AddressType: discoveryv1.AddressTypeIPv4, Ports: ports, Endpoints: endpoints}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	return s
}

// The records of Kubernetes' specification, each by its section, and what CoreDNS answers beyond it.
func TestRecords(t *testing.T) {
	b := newBed(t)
	b.create(&corev1.Service{ObjectMeta: meta("web"), Spec: corev1.ServiceSpec{ClusterIP: "10.96.5.5", Ports: []corev1.ServicePort{tcp("http", 80),
		{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}, {Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP}}}})
	b.create(&corev1.Service{ObjectMeta: meta("plain"), Spec: corev1.ServiceSpec{ClusterIP: "10.6.0.1", Ports: []corev1.ServicePort{{Port: 8080}}}})
	b.create(&corev1.Service{ObjectMeta: meta("db"), Spec: corev1.ServiceSpec{ClusterIP: "None", Ports: []corev1.ServicePort{tcp("sql", 5432)}}})
	b.create(&corev1.Service{ObjectMeta: meta("empty"), Spec: corev1.ServiceSpec{ClusterIP: "None"}})
	b.create(&corev1.Service{ObjectMeta: meta("away"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "www.example.com"}})
	b.create(&corev1.Service{ObjectMeta: meta("inside"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "web.default.svc.cluster.local"}})
	b.create(&corev1.Service{ObjectMeta: meta("round"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "round.default.svc.cluster.local"}})
	sql := []discoveryv1.EndpointPort{{Name: ptr.To("sql"), Port: ptr.To[int32](5432), Protocol: ptr.To(corev1.ProtocolTCP)}}
	admin := []discoveryv1.EndpointPort{{Name: ptr.To("admin"), Port: ptr.To[int32](9000), Protocol: ptr.To(corev1.ProtocolTCP)}}
	b.create(slice("db-1", "db", sql, endpoint(true, "db-0", "10.244.0.10"), endpoint(true, "", "10.244.0.11"), endpoint(false, "db-2", "10.244.0.12")))
	b.create(slice("db-2", "db", admin, endpoint(true, "db-0", "10.244.0.10")))
	b.create(&corev1.Service{ObjectMeta: meta("bare"), Spec: corev1.ServiceSpec{ClusterIP: "None"}})
	b.create(slice("bare-1", "bare", nil, endpoint(true, "", "10.244.0.30")))
	b.create(&corev1.Service{ObjectMeta: meta("lost"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "nobody.default.svc.cluster.local"}})
	b.create(slice("web-1", "web", nil, endpoint(true, "", "10.244.0.20")))
	b.run()

	const svc, none = ".default.svc.cluster.local.", "NXDOMAIN"
	for _, c := range []struct {
		name string
		kind uint16
		want []string // none: there is no such name; empty: there is, but nothing of that kind
		more []string
	}{
		{"dns-version.cluster.local.", dns.TypeTXT, []string{`dns-version.cluster.local. TXT "1.1.0"`}, nil},                                        // 2.2
		{"web" + svc, dns.TypeA, []string{"web" + svc + " A 10.96.5.5"}, nil},                                                                       // 2.3.1
		{"WeB" + svc, dns.TypeA, []string{"WeB" + svc + " A 10.96.5.5"}, nil},                                                                       // as it was asked
		{"plain" + svc, dns.TypeA, []string{"plain" + svc + " A 10.6.0.1"}, nil},                                                                    // of any range
		{"web" + svc, dns.TypeAAAA, nil, nil},                                                                                                       //
		{"web" + svc, dns.TypeMX, nil, nil},                                                                                                         //
		{"_http._tcp.web" + svc, dns.TypeSRV, []string{"_http._tcp.web" + svc + " SRV 0 100 80 web" + svc}, []string{"web" + svc + " A 10.96.5.5"}}, // 2.3.2
		{"_dns._udp.web" + svc, dns.TypeSRV, []string{"_dns._udp.web" + svc + " SRV 0 100 53 web" + svc}, []string{"web" + svc + " A 10.96.5.5"}},
		{"_dns._tcp.web" + svc, dns.TypeSRV, []string{none}, nil},
		{"_http._tcp.web" + svc, dns.TypeA, nil, nil},
		{"_tcp.web" + svc, dns.TypeSRV, []string{"_tcp.web" + svc + " SRV 0 100 53 web" + svc, "_tcp.web" + svc + " SRV 0 100 80 web" + svc}, []string{"web" + svc + " A 10.96.5.5"}},
		{"plain" + svc, dns.TypeSRV, []string{"plain" + svc + " SRV 0 100 8080 plain" + svc}, []string{"plain" + svc + " A 10.6.0.1"}},
		{"5.5.96.10.in-addr.arpa.", dns.TypePTR, []string{"5.5.96.10.in-addr.arpa. PTR web" + svc}, nil},     // 2.3.3
		{"db" + svc, dns.TypeA, []string{"db" + svc + " A 10.244.0.10", "db" + svc + " A 10.244.0.11"}, nil}, // 2.4.1
		{"db-0.db" + svc, dns.TypeA, []string{"db-0.db" + svc + " A 10.244.0.10"}, nil},                      //
		{"10-244-0-11.db" + svc, dns.TypeA, []string{"10-244-0-11.db" + svc + " A 10.244.0.11"}, nil},        //
		{"db-2.db" + svc, dns.TypeA, []string{none}, nil},                                                    // it is not ready
		{"_sql._tcp.db" + svc, dns.TypeSRV, []string{"_sql._tcp.db" + svc + " SRV 0 100 5432 10-244-0-11.db" + svc, "_sql._tcp.db" + svc + " SRV 0 100 5432 db-0.db" + svc}, // 2.4.2
			[]string{"10-244-0-11.db" + svc + " A 10.244.0.11", "db-0.db" + svc + " A 10.244.0.10"}},
		{"_admin._tcp.db" + svc, dns.TypeSRV, []string{"_admin._tcp.db" + svc + " SRV 0 100 9000 db-0.db" + svc}, []string{"db-0.db" + svc + " A 10.244.0.10"}},
		{"10.0.244.10.in-addr.arpa.", dns.TypePTR, []string{"10.0.244.10.in-addr.arpa. PTR db-0.db" + svc}, nil}, // 2.4.3
		{"empty" + svc, dns.TypeA, []string{none}, nil},                                        //
		{"away" + svc, dns.TypeCNAME, []string{"away" + svc + " CNAME www.example.com."}, nil}, // 2.5
		{"away" + svc, dns.TypeA, []string{"SERVFAIL"}, nil},                                   // nobody knows it here
		{"inside" + svc, dns.TypeA, []string{"inside" + svc + " CNAME web" + svc, "web" + svc + " A 10.96.5.5"}, nil},
		{"10-244-0-20.web" + svc, dns.TypeA, []string{"10-244-0-20.web" + svc + " A 10.244.0.20"}, nil},
		{"10-244-0-77.default.pod.cluster.local.", dns.TypeA, []string{"10-244-0-77.default.pod.cluster.local. A 10.244.0.77"}, nil},
		{"nobody" + svc, dns.TypeA, []string{none}, nil},
		{"web.nowhere.svc.cluster.local.", dns.TypeA, []string{none}, nil},
		{"default.svc.cluster.local.", dns.TypeA, nil, nil},
		{"nowhere.svc.cluster.local.", dns.TypeA, []string{none}, nil},
		{"svc.cluster.local.", dns.TypeA, nil, nil},
		{"nowhere.pod.cluster.local.", dns.TypeA, nil, nil},
		{"bare" + svc, dns.TypeSRV, nil, nil},
		{"lost" + svc, dns.TypeA, []string{none}, nil},
		{"cluster.local.", dns.TypeNS, []string{"cluster.local. NS ns.dns.cluster.local."}, nil},
		{"ns.dns.cluster.local.", dns.TypeA, []string{"ns.dns.cluster.local. A 127.0.0.1"}, nil},
		{"www.example.com.default.svc.cluster.local.", dns.TypeA, []string{none}, nil},
	} {
		m := b.ask(c.name, c.kind)
		got := text(m.Answer)
		switch {
		case m.Rcode == dns.RcodeNameError:
			got = []string{none}
		case m.Rcode != dns.RcodeSuccess:
			got = []string{dns.RcodeToString[m.Rcode]}
		}
		if !slices.Equal(got, append([]string{}, c.want...)) || !slices.Equal(text(m.Extra), append([]string{}, c.more...)) {
			t.Errorf("%s %s: %q, %q\nwant %q, %q", c.name, dns.TypeToString[c.kind], got, text(m.Extra), c.want, c.more)
		}
		if m.Rcode == dns.RcodeServerFailure {
			continue // nothing is known
		}
		if len(m.Answer) == 0 && (len(m.Ns) != 1 || m.Ns[0].Header().Rrtype != dns.TypeSOA || m.Ns[0].Header().Name != "cluster.local.") {
			t.Errorf("%s %s: no SOA says for how long that holds: %v", c.name, dns.TypeToString[c.kind], m.Ns)
		}
		if !m.Authoritative {
			t.Errorf("%s %s: not authoritative", c.name, dns.TypeToString[c.kind])
		}
	}
	if m := b.ask("round"+svc, dns.TypeA); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("a Service that is its own alias: %v", m)
	}

	// Changes count at once.
	if _, err := b.admin.Delete(t.Context(), client.Key{Kind: api.Services, Namespace: "default", Name: "plain"}, nil); err != nil {
		t.Fatal(err)
	}
	b.create(&corev1.Service{ObjectMeta: meta("fresh"), Spec: corev1.ServiceSpec{ClusterIP: "10.6.0.1", Ports: []corev1.ServicePort{{Port: 1}}}})
	for len(b.ask("fresh"+svc, dns.TypeA).Answer) == 0 {
		time.Sleep(time.Millisecond)
	}
	if m := b.ask("plain"+svc, dns.TypeA); m.Rcode != dns.RcodeNameError {
		t.Errorf("a deleted Service: %v", m)
	}
	if got := text(b.ask("1.0.6.10.in-addr.arpa.", dns.TypePTR).Answer); !slices.Equal(got, []string{"1.0.6.10.in-addr.arpa. PTR fresh" + svc}) {
		t.Errorf("an address with a new owner: %q", got)
	}
}

// The hosts of DNS objects resolve to their addresses, as long as there are such objects; other names of the same domain are
// somebody else's.
func TestHosts(t *testing.T) {
	b := newBed(t)
	outside := newOutsider(t, says("192.0.2.1"))
	b.outside.Store(&[]netip.AddrPort{outside.at})
	obj := &minik8s.DNS{ObjectMeta: meta("hello"), Spec: minik8s.DNSSpec{Host: "hello.world.minik8s", ServiceAddress: "10.8.0.1",
		Paths: []minik8s.DNSPath{{Path: "/", Address: "http://10.6.1.1:80"}}}}
	b.create(obj)
	b.run()
	if m := b.ask("Hello.World.minik8s", dns.TypeA); !slices.Equal(text(m.Answer), []string{"Hello.World.minik8s. A 10.8.0.1"}) || !m.Authoritative {
		t.Errorf("the host: %v", m)
	}
	if m := b.ask("hello.world.minik8s", dns.TypeAAAA); m.Rcode != dns.RcodeSuccess || len(m.Answer) != 0 || len(m.Ns) != 1 {
		t.Errorf("what it does not have: %v", m)
	}
	if got := text(b.ask("bye.world.minik8s", dns.TypeA).Answer); !slices.Equal(got, []string{"bye.world.minik8s. A 192.0.2.1"}) {
		t.Errorf("another name: %q", got)
	}
	if _, err := b.admin.Delete(t.Context(), client.Key{Kind: api.DNSes, Namespace: "default", Name: "hello"}, nil); err != nil {
		t.Fatal(err)
	}
	for slices.Equal(text(b.ask("hello.world.minik8s", dns.TypeA).Answer), []string{"hello.world.minik8s. A 10.8.0.1"}) {
		time.Sleep(time.Millisecond)
	}
}

// outsider is somebody else's server: it knows *.example.com, and counts.
type outsider struct {
	at    netip.AddrPort
	asked atomic.Int32
}

func newOutsider(t *testing.T, answer func(w dns.ResponseWriter, r *dns.Msg)) *outsider {
	t.Helper()
	o := &outsider{}
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.at = netip.MustParseAddrPort(conn.LocalAddr().String())
	srv := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		o.asked.Add(1)
		answer(w, r)
	})}
	go srv.ActivateAndServe()            //nolint:errcheck // it ends with the test
	t.Cleanup(func() { srv.Shutdown() }) //nolint:errcheck // as above
	return o
}

func says(ip string) func(w dns.ResponseWriter, r *dns.Msg) {
	return func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 300}, A: net.ParseIP(ip)}}
		w.WriteMsg(m) //nolint:errcheck // a test's
	}
}

// All other names are the machine's servers' to answer; what they say is kept, and they may become others.
func TestOtherNames(t *testing.T) {
	b := newBed(t)
	b.create(&corev1.Service{ObjectMeta: meta("away"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "www.example.com"}})
	b.run()
	if m := b.ask("nobody.example.com", dns.TypeA); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("without a server: %v", m)
	}
	first := newOutsider(t, says("192.0.2.1"))
	b.outside.Store(&[]netip.AddrPort{first.at})
	for len(b.ask("first.example.com", dns.TypeA).Answer) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	before := first.asked.Load()
	for range 5 {
		if got := text(b.ask("www.example.com", dns.TypeA).Answer); !slices.Equal(got, []string{"www.example.com. A 192.0.2.1"}) {
			t.Fatalf("%q", got)
		}
	}
	if n := first.asked.Load() - before; n != 1 {
		t.Errorf("it was asked %d times for what it had said", n)
	}
	if got := text(b.ask("away.default.svc.cluster.local", dns.TypeA).Answer); !slices.Equal(got, []string{"away.default.svc.cluster.local. CNAME www.example.com.", "www.example.com. A 192.0.2.1"}) {
		t.Errorf("an external name: %q", got)
	}
	if m := b.ask("1.0.0.10.in-addr.arpa", dns.TypePTR); m.Rcode != dns.RcodeSuccess || m.Authoritative {
		t.Errorf("an address that is nobody's here: %v", m)
	}
	second := newOutsider(t, says("192.0.2.2"))
	b.outside.Store(&[]netip.AddrPort{second.at})
	for i := 0; second.asked.Load() == 0; i++ {
		b.ask(fmt.Sprintf("n%d.example.com", i), dns.TypeA)
		time.Sleep(10 * time.Millisecond)
	}
}

// A client whose questions nobody answers does not keep it from answering others, nor it from what it knows.
func TestFlood(t *testing.T) {
	b := newBed(t)
	b.create(&corev1.Service{ObjectMeta: meta("web"), Spec: corev1.ServiceSpec{ClusterIP: "10.96.5.5", Ports: []corev1.ServicePort{{Port: 80}}}})
	silent := newOutsider(t, func(dns.ResponseWriter, *dns.Msg) {})
	b.outside.Store(&[]netip.AddrPort{silent.at})
	b.run()
	conn, err := net.Dial("udp4", b.at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	refused := make(chan struct{})
	go func() {
		buf := make([]byte, 1500)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			var m dns.Msg
			if m.Unpack(buf[:n]) == nil && m.Rcode == dns.RcodeRefused {
				close(refused)
				return
			}
		}
	}()
	for i := 0; ; i++ {
		q, err := new(dns.Msg).SetQuestion(fmt.Sprintf("n%d.example.com.", i), dns.TypeA).Pack()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(q); err != nil {
			t.Fatal(err)
		}
		select {
		case <-refused:
			q := new(dns.Msg).SetQuestion("web.default.svc.cluster.local.", dns.TypeA)
			for { // the kernel drops what is too much for the socket
				c := dns.Client{Timeout: time.Second}
				if m, _, err := c.ExchangeContext(t.Context(), q, b.at); err == nil {
					if len(m.Answer) != 1 {
						t.Errorf("a name of the cluster: %v", m)
					}
					return
				}
			}
		default:
		}
		if i > 100*mostOfOne {
			t.Fatal("it accepts any number of questions")
		}
	}
}

// Answers that are too long for UDP say so, and are whole by TCP; the client says how long they may be.
func TestLongAnswers(t *testing.T) {
	b := newBed(t)
	b.create(&corev1.Service{ObjectMeta: meta("many"), Spec: corev1.ServiceSpec{ClusterIP: "None"}})
	for s := range 3 {
		var es []discoveryv1.Endpoint
		for i := range 100 {
			es = append(es, endpoint(true, "", fmt.Sprintf("10.244.%d.%d", s, i+1)))
		}
		b.create(slice(fmt.Sprint("many-", s), "many", nil, es...))
	}
	b.run()
	q := new(dns.Msg).SetQuestion("many.default.svc.cluster.local.", dns.TypeA)
	m := b.exchange(new(dns.Client), q)
	if m.Compress = true; !m.Truncated || m.Len() > dns.MinMsgSize {
		t.Errorf("by UDP: truncated %v, %d bytes", m.Truncated, m.Len())
	}
	if m := b.exchange(&dns.Client{Net: "tcp"}, q); m.Truncated || len(m.Answer) != 300 {
		t.Errorf("by TCP: truncated %v, %d answers", m.Truncated, len(m.Answer))
	}
	if m := b.exchange(&dns.Client{UDPSize: 8192}, q.Copy().SetEdns0(8192, false)); m.Truncated || len(m.Answer) != 300 || m.IsEdns0() == nil {
		t.Errorf("by UDP with room: truncated %v, %d answers", m.Truncated, len(m.Answer))
	}
}

// What is no question, or asks for what is not given.
func TestOddQuestions(t *testing.T) {
	b := newBed(t)
	b.run()
	for want, q := range map[int]*dns.Msg{
		dns.RcodeNotImplemented: {MsgHdr: dns.MsgHdr{Id: 1, Opcode: dns.OpcodeStatus}, Question: []dns.Question{{Name: "cluster.local.", Qtype: dns.TypeA, Qclass: dns.ClassINET}}},
		dns.RcodeFormatError:    {MsgHdr: dns.MsgHdr{Id: 2}},
		dns.RcodeRefused:        new(dns.Msg).SetAxfr("cluster.local."),
		dns.RcodeBadVers:        badVersion(),
	} {
		if m := b.exchange(new(dns.Client), q); m.Rcode != want {
			t.Errorf("%v: %s, want %s", q, dns.RcodeToString[m.Rcode], dns.RcodeToString[want])
		}
	}
	conn, err := net.Dial("udp4", b.at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, junk := range []string{"", "x", strings.Repeat("\xff", 1000), strings.Repeat("\x00", 12)} {
		if _, err := conn.Write([]byte(junk)); err != nil {
			t.Fatal(err)
		}
	}
	if m := b.ask("cluster.local", dns.TypeSOA); len(m.Answer) != 1 {
		t.Errorf("after junk: %v", m)
	}
}

func badVersion() *dns.Msg {
	m := new(dns.Msg).SetQuestion("cluster.local.", dns.TypeA)
	m.SetEdns0(4096, false)
	m.IsEdns0().SetVersion(7)
	return m
}

// After a restart without any master it answers where it did before: other names at once, after a first question that waits;
// the cluster's with "try again".
func TestWithoutTheAPI(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("port 53 needs root")
	}
	outside := newOutsider(t, says("192.0.2.1"))
	log := slog.New(slog.DiscardHandler)
	away := faulty.New(local.New(registrytest.New(t), registry.System), faulty.Rates{Drop: 1}, 1)
	at := netip.MustParseAddr("127.96.0.10")
	told := make(chan netip.Addr, 10)
	s := New(Config{Domain: "cluster.local", Held: func() netip.Addr { return at }, Answers: func(a netip.Addr) { told <- a }, Hold: func(a netip.Addr) error {
		t.Errorf("the address becomes %v", a)
		return nil
	}, Log: log}, informer.New[*corev1.Service](away, api.Services, informer.Options{Log: log}),
		informer.New[*discoveryv1.EndpointSlice](away, api.EndpointSlices, informer.Options{Log: log}), informer.New[*minik8s.DNS](away, api.DNSes, informer.Options{Log: log}))
	s.forward.servers = func() []netip.AddrPort { return []netip.AddrPort{outside.at} }
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx, func() { t.Error("it is ready") }) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	ask := func(name string) *dns.Msg {
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) { // it may not listen yet
			c := dns.Client{Timeout: 10 * time.Second}
			m, _, err := c.Exchange(new(dns.Msg).SetQuestion(name, dns.TypeA), at.String()+":53")
			if err == nil {
				return m
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	for range 3 {
		if got := text(ask("www.example.com.").Answer); !slices.Equal(got, []string{"www.example.com. A 192.0.2.1"}) {
			t.Errorf("another name: %q", got)
		}
	}
	if m := ask("web.default.svc.cluster.local."); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("a name of the cluster: %v", m)
	}
	if a := <-told; a != at || len(told) > 0 {
		t.Errorf("it is told that names are answered at %v, and %d times more", a, len(told))
	}
}

// Which servers are the machine's own.
func TestMachinesServers(t *testing.T) {
	own := netip.MustParseAddr("10.96.0.10")
	s := &Server{cfg: Config{ResolvConf: filepath.Join(t.TempDir(), "resolv.conf")}}
	s.at.Store(&own)
	if got := s.machines(); got != nil {
		t.Errorf("without a file: %v", got)
	}
	block := hostdns.File{Path: s.cfg.ResolvConf, Owner: "a"}
	for _, use := range []bool{false, true} {
		if err := os.WriteFile(s.cfg.ResolvConf, []byte("search example\nnameserver 192.0.2.1\nnameserver 10.96.0.10\nnameserver nonsense\nnameserver 2001:db8::1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if use {
			if err := block.Use(own); err != nil {
				t.Fatal(err)
			}
		}
		if got := fmt.Sprint(s.machines()); got != "[192.0.2.1:53 [2001:db8::1]:53]" {
			t.Errorf("with our own %t: %s", use, got)
		}
	}
	// Where the machine asks this server by systemd-resolved, that is not asked in turn: those behind it are.
	if err := os.WriteFile(s.cfg.ResolvConf, []byte("nameserver 127.0.0.53\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.machines()); got != "[127.0.0.53:53]" {
		t.Errorf("by systemd-resolved: %s", got)
	}
	s.cfg.Asked = true
	behind := netip.MustParseAddr("192.0.2.53")
	s.behind = func() ([]byte, error) { return []byte("nameserver 10.96.0.10\nnameserver 192.0.2.53\n"), nil }
	if got := s.machines(); len(got) != 1 || got[0].Addr() != behind {
		t.Errorf("behind systemd-resolved: %v", got)
	}
}

// Which Service is answered by the nodes.
func TestAddress(t *testing.T) {
	svc := Service(netip.MustParseAddr("10.96.0.10"))
	if got := Address(svc); got.String() != "10.96.0.10" {
		t.Error(got)
	}
	pods := svc.DeepCopy()
	delete(pods.Labels, proxyLabel)
	other := svc.DeepCopy()
	other.Name = "dns"
	headless := svc.DeepCopy()
	headless.Spec.ClusterIP = "None"
	for _, svc := range []*corev1.Service{nil, pods, other, headless} {
		if got := Address(svc); got.IsValid() {
			t.Errorf("%v: %s", svc, got)
		}
	}
}
