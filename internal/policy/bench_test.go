package policy

import (
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"
)

// fill gives the cluster n pods of this node, in groups of twenty to a namespace, and a policy for each of them: it lets in
// another pod of its namespace, and those of one label in another namespace.
func (a apiServer) fill(n int) {
	for i := range n {
		ns, name := fmt.Sprint("filler-", i/20), fmt.Sprint("p", i%20)
		a.namespace(ns, map[string]string{"ns": ns})
		a.pod(ns, name, here, fmt.Sprintf("10.245.%d.%d", i>>8, i&255))
		a.policy(np(ns, name, "pod="+name, in(ports("80", "http"), pods(fmt.Sprint("pod=p", (i+1)%20)), both(fmt.Sprint("ns=filler-", (i/20+1)%(n/20)), "pod=p0"))))
	}
}

func quantiles(b *testing.B, list []time.Duration) {
	slices.Sort(list)
	b.ReportMetric(float64(list[len(list)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(list[len(list)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// From what an informer tells to the first packet that passes: a policy comes that lets a pod in, or a pod gets the label that
// does.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{20, 1000} {
		for _, what := range []string{"policy", "label"} {
			b.Run(fmt.Sprintf("%s/policies=%d", what, n), func(b *testing.B) {
				h := newHost(b)
				server, client := h.connect(), h.connect()
				server.serve(8080)
				h.api.pod("x", "server", here, server.addr)
				h.api.fill(n)
				h.api.policy(np("x", "deny", "pod=server", typed(ingress)))
				gate := np("x", "gate", "pod=server", in(ports("8080/UDP"), pods("pod=client")))
				began := time.Now()
				h.up()
				h.caughtUp()
				b.ReportMetric(time.Since(began).Seconds(), "load-s")
				var list []time.Duration
				for b.Loop() {
					if what == "policy" {
						h.api.noPolicy("x", "gate")
						h.api.pod("x", "client", here, client.addr)
					} else {
						h.api.policy(gate)
						h.api.pod("x", "other", here, client.addr)
						h.api.noPod("x", "client")
					}
					h.caughtUp()
					conn := client.dial("udp", server.addr+":8080") // no answers to the last one's packets
					if echoed(conn, time.Millisecond) {
						b.Fatal("it passes already")
					}
					began := time.Now()
					if what == "policy" {
						h.api.policy(gate)
					} else {
						h.api.noPod("x", "other")
						h.api.pod("x", "client", here, client.addr)
					}
					for !echoed(conn, 500*time.Microsecond) {
					}
					list = append(list, time.Since(began))
				}
				quantiles(b, list)
			})
		}
	}
}

// The time of a first packet's way there and back between two pods of a node: without a policy, and with a thousand, one for
// each end.
func BenchmarkFirstPacket(b *testing.B) {
	for _, n := range []int{0, 1000, 0, 1000} {
		b.Run(fmt.Sprintf("policies=%d", n), func(b *testing.B) {
			h := newHost(b)
			server, client := h.connect(), h.connect()
			server.serve(8080)
			h.api.pod("x", "server", here, server.addr)
			h.api.pod("x", "client", here, client.addr)
			if n > 0 {
				h.api.fill(n)
				h.api.policy(np("x", "in", "pod=server", in(ports("8080/UDP"), pods("pod=client"))))
				h.api.policy(np("x", "out", "pod=client", out(ports("8080/UDP"), pods("pod=server"))))
			}
			h.up()
			h.caughtUp()
			var list []time.Duration
			buf := make([]byte, 100)
			err := client.inside(func() error {
				for b.Loop() {
					c, err := net.Dial("udp4", server.addr+":8080") // a connection of its own for each
					if err != nil {
						return err
					}
					began := time.Now()
					if _, err := c.Write([]byte("x")); err != nil {
						return err
					}
					if _, err := c.Read(buf); err != nil {
						return err
					}
					list = append(list, time.Since(began))
					c.Close() //nolint:errcheck // a benchmark's
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			quantiles(b, list)
		})
	}
}

// What 1,000 policies over 1,000 pods cost the daemon in memory, beside the objects.
func BenchmarkMemory(b *testing.B) {
	h := newHost(b)
	h.api.fill(1000)
	rest := func() int64 {
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := rest()
	h.up()
	h.caughtUp()
	for b.Loop() {
	}
	b.ReportMetric(float64(rest()-before)/(1<<20), "MiB")
	b.ReportMetric(0, "ns/op")
}
