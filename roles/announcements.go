package roles

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/announce"
	"minik8s/internal/api"
	"minik8s/internal/informer"
)

// runAnnouncements answers on this machine's links for the addresses of load balancers that the master has given to this node. It does
// not while no master has taken a heartbeat for so long that others may think this node lost: then another may answer.
func (d *Daemon) runAnnouncements(ctx context.Context, ready func()) error {
	services := informer.New[*corev1.Service](d.asNode(), api.Services, informer.Options{Views: d.nodeViews(), Log: d.log})
	changed := services.Signal(func(old, now *corev1.Service) bool { return !slices.Equal(d.announced(old), d.announced(now)) })
	a := announce.New(d.hearAddresses, d.log)
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() { a.Run(ctx) })
	beside.Go(func() {
		silence := time.NewTimer(d.heard.patience)
		defer silence.Stop()
		for quiet := false; ; {
			select {
			case <-changed:
			case <-d.heard.news:
				silence.Reset(d.heard.patience)
				if !quiet {
					continue
				}
				quiet = false
			case <-silence.C:
				quiet = true
			case <-ctx.Done():
				return
			}
			var addrs []netip.Addr
			for _, svc := range services.List() {
				if !quiet {
					addrs = append(addrs, d.announced(svc)...)
				}
			}
			a.Set(addrs)
		}
	})
	return services.Run(ctx, ready)
}

// announced are the addresses of a Service for which this node is to answer.
func (d *Daemon) announced(svc *corev1.Service) (out []netip.Addr) {
	if svc == nil || !api.Balanced(svc) || svc.Annotations[api.AnnouncedByAnnotation] != d.cfg.NodeName {
		return nil
	}
	for _, in := range svc.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(in.IP); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// heard is how it is known whether the masters hear this node: news comes with each heartbeat that one has taken. patience is how long
// none may come: as long as the Lease holds.
type heard struct {
	news     chan struct{}
	patience time.Duration
}

func newHeard(heartbeat time.Duration) *heard {
	return &heard{news: make(chan struct{}, 1), patience: 4 * heartbeat}
}

// tell is called with each heartbeat that a master has taken.
func (h *heard) tell() {
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// networks are those of this machine's links, for the Node's annotation.
func networks() string {
	var out []string
	for _, p := range announce.Networks() {
		out = append(out, p.String())
	}
	return strings.Join(out, ",")
}
