package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"minik8s/internal/bench/bed"
)

// The numbers of Services in the measurements, and how often each is made.
const (
	servicesHeld  = 2_000
	servicesMany  = 5_000
	servicesMost  = 10_000
	serviceTimes  = 100
	serviceProbes = 500
)

const (
	servicesPath = "/api/v1/namespaces/default/services"
	slicesPath   = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
)

// m is an object as JSON.
type m = bed.M

// Services measures the data path of Services, from a request to the first connection.
func Services(r *bed.Report) error {
	return bed.WithDaemon(true, func(d *bed.Daemon) error {
		b := &serviceBench{Report: r, Daemon: d}
		return b.run()
	})
}

type serviceBench struct {
	*bed.Report
	*bed.Daemon
	http *http.Client
	base string
	pod  string // the address of the one pod that answers
}

func (b *serviceBench) run() (err error) {
	if b.http, b.base, err = b.Secure(bed.Connections); err != nil {
		return err
	}
	if err := b.startPod(); err != nil {
		return err
	}
	alone, err := b.connecting()
	if err != nil {
		return err
	}
	if err := b.newService("empty cluster", "upstream 523 / 1,048 ms; 70 / 84 ms with a sync every 20 ms"); err != nil {
		return err
	}
	if err := b.hold(); err != nil {
		return err
	}
	if err := b.newService(fmt.Sprintf("%d Services there", servicesHeld), "upstream 886 / 1,551 ms; 592 / 648 ms with a sync every 20 ms"); err != nil {
		return err
	}
	if err := b.fill(servicesHeld, servicesMany); err != nil {
		return err
	}
	if err := b.newEndpoint(); err != nil {
		return err
	}
	if err := b.fill(servicesMany, servicesMost); err != nil {
		return err
	}
	crowded, err := b.connecting()
	if err != nil {
		return err
	}
	b.Add(fmt.Sprintf("connecting to a Service among %d, of the only one", servicesMost), float64(crowded.P(50))/float64(alone.P(50)), "x", "<= 1.1",
		fmt.Sprintf("p50 %.0f and %.0f us", 1000*bed.Ms(crowded.P(50)), 1000*bed.Ms(alone.P(50))))
	return nil
}

// startPod runs a pod that answers, behind the Service web.
func (b *serviceBench) startPod() error {
	web := bed.Pod("web", "minik8s/hello")
	web["metadata"].(m)["labels"] = m{"app": "web"}
	if err := b.Do("POST", bed.PodsPath, web, nil); err != nil {
		return err
	}
	err := b.Until(30*time.Second, func() bool {
		var p struct{ Status struct{ PodIP, Phase string } }
		err := b.Do("GET", bed.PodsPath+"/web", nil, &p)
		b.pod = p.Status.PodIP
		return err == nil && p.Status.Phase == "Running" && b.pod != "" && connect(b.pod)
	})
	if err != nil {
		return err
	}
	_, err = b.create("web", m{"app": "web"})
	return err
}

// create makes a Service and returns its address. Without a selector its endpoints are the caller's.
func (b *serviceBench) create(name string, selector m) (string, error) {
	spec := m{"ports": []m{{"port": 80}}}
	if selector != nil {
		spec["selector"] = selector
	}
	var made struct{ Spec struct{ ClusterIP string } }
	err := bed.Request(b.http, b.base, "POST", servicesPath, m{"apiVersion": "v1", "kind": "Service", "metadata": m{"name": name}, "spec": spec}, &made)
	return made.Spec.ClusterIP, err
}

func (b *serviceBench) remove(name string) error {
	return bed.Request(b.http, b.base, "DELETE", servicesPath+"/"+name, nil, nil)
}

// attempt is how long a connection may take: one to an address that nobody has would wait for long.
const attempt = 5 * time.Millisecond

func connect(address string) bool {
	c, err := net.DialTimeout("tcp", net.JoinHostPort(address, "80"), attempt)
	if err != nil {
		return false
	}
	c.Close() //nolint:errcheck // nothing was written
	return true
}

// Until an address is a Service's a packet to it is lost, and who has sent it waits: so reach begins another attempt each time after
// nextAttempt, whatever becomes of the earlier ones.
const (
	nextAttempt = 250 * time.Microsecond
	longAttempt = 100 * time.Millisecond
)

// reach connects until it succeeds.
func reach(address string) error {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	connected := make(chan bool, 1)
	again := time.NewTicker(nextAttempt)
	defer again.Stop()
	for {
		go func() {
			d := net.Dialer{Timeout: longAttempt}
			c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(address, "80"))
			if err != nil {
				return
			}
			c.Close() //nolint:errcheck // nothing was written
			select {
			case connected <- true:
			default:
			}
		}()
		select {
		case <-connected:
			return nil
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer", address)
		}
	}
}

// connecting connects to the Service web again and again.
func (b *serviceBench) connecting() (times bed.Samples, err error) {
	var web struct{ Spec struct{ ClusterIP string } }
	if err := b.Do("GET", servicesPath+"/web", nil, &web); err != nil {
		return nil, err
	}
	if err := reach(web.Spec.ClusterIP); err != nil {
		return nil, err
	}
	for range serviceProbes {
		began := time.Now()
		if connect(web.Spec.ClusterIP) {
			times = append(times, time.Since(began))
		}
	}
	if len(times) < serviceProbes/2 {
		return nil, errors.New("most connections to a Service fail")
	}
	return times, nil
}

// newService measures from the POST of a Service for the pod to the first connection.
func (b *serviceBench) newService(when, upstream string) error {
	var times bed.Samples
	for i := range serviceTimes {
		name := fmt.Sprint("new-", i)
		began := time.Now()
		at, err := b.create(name, m{"app": "web"})
		if err == nil {
			err = reach(at)
		}
		times = append(times, time.Since(began))
		if err == nil {
			err = b.remove(name)
		}
		if err != nil {
			return err
		}
	}
	b.Add("POST of a Service to a connection, "+when+", p50", bed.Ms(times.P(50)), "ms", "<= 5 ms", upstream)
	b.Add("  p99", bed.Ms(times.P(99)), "ms", "<= 20 ms", "")
	return nil
}

// newEndpoint measures from the POST of a slice with a ready endpoint to the first connection.
func (b *serviceBench) newEndpoint() error {
	var times bed.Samples
	for i := range serviceTimes {
		name := fmt.Sprint("ready-", i)
		at, err := b.create(name, nil)
		if err != nil {
			return err
		}
		slice := m{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": m{"name": name, "labels": m{"kubernetes.io/service-name": name}},
			"addressType": "IPv4", "ports": []m{{"port": 80}}, "endpoints": []m{{"addresses": []string{b.pod}, "conditions": m{"ready": true}}}}
		began := time.Now()
		if err = bed.Request(b.http, b.base, "POST", slicesPath, slice, nil); err == nil {
			err = reach(at)
		}
		times = append(times, time.Since(began))
		if err == nil {
			err = b.remove(name)
		}
		if err != nil {
			return err
		}
	}
	b.Add(fmt.Sprintf("endpoint ready to a connection, %d Services there, p50", servicesMany), bed.Ms(times.P(50)), "ms", "<= 5 ms", "a synced write, and one transaction of the kernel")
	b.Add("  p99", bed.Ms(times.P(99)), "ms", "<= 20 ms", "")
	return nil
}

// fill makes Services for the pod, from the number that there are to another, and waits until the last has its endpoint.
func (b *serviceBench) fill(from, to int) error {
	if _, _, err := bed.Hammer(to-from, func(i int) error {
		_, err := b.create(fmt.Sprint("filler-", from+i-1), m{"app": "web"})
		return err
	}); err != nil {
		return err
	}
	for i := from; i < to; i += max(1, (to-from)/50) {
		var svc struct{ Spec struct{ ClusterIP string } }
		err := b.Do("GET", fmt.Sprintf("%s/filler-%d", servicesPath, i), nil, &svc)
		if err == nil {
			err = reach(svc.Spec.ClusterIP)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hold measures what Services cost that nobody uses.
func (b *serviceBench) hold() error {
	rest := func() (pss float64, slab int64, err error) {
		if err := bed.Request(b.http, b.base, "GET", "/debug/pprof/heap?gc=1", nil, nil); err != nil { // not counting garbage
			return 0, 0, err
		}
		time.Sleep(20 * time.Second) // so that freed memory is returned and not counted
		pss, _, _ = bed.Memory(b.Daemon)
		slab, err = kernelSlab()
		return pss, slab, err
	}
	before, slabBefore, err := rest()
	if err != nil {
		return err
	}
	if err := b.fill(0, servicesHeld); err != nil {
		return err
	}
	after, slab, err := rest()
	if err != nil {
		return err
	}
	const window = 20 * time.Second
	used := bed.CPU(b.Daemon)
	time.Sleep(window)
	used = bed.CPU(b.Daemon) - used
	b.Add(fmt.Sprintf("memory to hold %d Services (PSS)", servicesHeld), (after-before)/1024, "MiB", "<= 20 MiB",
		fmt.Sprintf("with a slice and Endpoints each; the kernel's slab %+.1f MiB, the whole machine's; upstream +170 MiB", float64(slab-slabBefore)/1024))
	b.Add("  CPU at rest", 100*used/window.Seconds(), "%", "<= 0.5 %", "as without them")
	return nil
}

// kernelSlab is the size of the kernel's slab in KiB.
func kernelSlab() (n int64, err error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Slab:"); ok {
			_, err = fmt.Sscan(rest, &n)
			return n, err
		}
	}
	return 0, errors.New("/proc/meminfo has no Slab")
}
