package traffic

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"minik8s/internal/bench/bed"
	"minik8s/internal/machine"
	"minik8s/internal/network/hosttest"
	"minik8s/internal/network/overlay"
)

const (
	// sendFor is how long one transfer lasts, and rounds how often each is measured: in turn, so that what else the
	// machine does touches all of them alike.
	sendFor  = 700 * time.Millisecond
	rounds   = 5
	connects = 200
)

// wired are two hosts on one wire.
type wired struct {
	name  string
	hosts []*hosttest.Machine
	pods  []netip.Addr // of each host
	// from and to are the pods' names; empty: the hosts themselves
	from, to string
	rates    []float64
	times    bed.Samples
}

// Network measures what pods on two hosts can send to each other, by VXLAN and by direct routes, beside the
// same two hosts and the same namespaces joined by hand: links and routes, no rules.
func Network(r *bed.Report) (err error) {
	var all []*wired
	defer func() {
		for _, w := range all {
			for _, h := range w.hosts {
				err = errors.Join(err, h.Close())
			}
			err = errors.Join(err, hosttest.Unplug("bench-"+w.name))
		}
	}()
	for _, name := range []string{"hand", "vxlan", "direct"} {
		w := &wired{name: name, from: "pod", to: "pod"}
		all = append(all, w)
		if err := w.build(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	hand := all[0]
	hosts := &wired{name: "hosts", hosts: hand.hosts, pods: []netip.Addr{netip.MustParseAddr("172.30.1.1"), netip.MustParseAddr("172.30.1.2")}}
	measured := append(slices.Clone(all), hosts)
	for _, w := range measured {
		if err := w.hosts[1].Do("Serve", hosttest.Where{Pod: w.to, Addr: ":5201"}); err != nil {
			return err
		}
	}
	for range rounds {
		for _, w := range measured {
			if err := w.measure(); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	rate := func(w *wired) float64 { slices.Sort(w.rates); return w.rates[len(w.rates)/2] }
	for _, w := range all[1:] {
		reach := map[string]string{"vxlan": ">= 0.6", "direct": ">= 0.85"}[w.name]
		r.Add("pod to pod on two hosts, "+w.name+", of joined by hand", rate(w)/rate(hand), "x", reach,
			fmt.Sprintf("TCP %.2f GB/s; by hand %.2f, the hosts themselves %.2f", rate(w)/1e9, rate(hand)/1e9, rate(hosts)/1e9))
		r.Add("connecting to a pod on another host, "+w.name+", p50", bed.Ms(w.times.P(50)), "ms", "",
			fmt.Sprintf("by hand %.3f ms, the hosts themselves %.3f", bed.Ms(hand.times.P(50)), bed.Ms(hosts.times.P(50))))
	}
	return nil
}

// build starts the hosts, each with a pod.
func (w *wired) build() error {
	if err := machine.Bridge("bench-"+w.name, netip.Prefix{}); err != nil {
		return err
	}
	addrs := []netip.Prefix{netip.MustParsePrefix("172.30.1.1/24"), netip.MustParsePrefix("172.30.1.2/24")}
	for i, addr := range addrs {
		h, err := hosttest.Start("bench-"+w.name, addr, addrs[1-i].Addr())
		if err != nil {
			return err
		}
		w.hosts = append(w.hosts, h)
		if w.name == "hand" {
			pod, err := h.ByHand("pod", i, addrs[1-i].Addr())
			if err != nil {
				return err
			}
			w.pods = append(w.pods, pod)
			continue
		}
		var pod netip.Addr
		cfg := hosttest.Config{PodCIDR: hosttest.Range(i), NodeIP: addr.Addr(), Direct: w.name == "direct"}
		peer := overlay.Peer{Node: "peer", Address: addrs[1-i].Addr(), Ranges: []netip.Prefix{hosttest.Range(1 - i)}}
		if err := errors.Join(h.Do("Up", cfg), h.Do("SetPeers", []overlay.Peer{peer}), h.Ask("Pod", "pod", &pod)); err != nil {
			return err
		}
		w.pods = append(w.pods, pod)
	}
	return nil
}

func (w *wired) measure() error {
	at := hosttest.Where{Pod: w.from, Addr: w.pods[1].String() + ":5201", For: sendFor, Connect: connects / rounds}
	var rate float64
	if err := w.hosts[0].Ask("Send", at, &rate); err != nil {
		return err
	}
	w.rates = append(w.rates, rate)
	var times []time.Duration
	if err := w.hosts[0].Ask("Connects", at, &times); err != nil {
		return err
	}
	w.times = append(w.times, times...)
	return nil
}
