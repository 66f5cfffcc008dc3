package traffic

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"minik8s/internal/bench/bed"
)

// Policies are measured with so many of them over as many pods. Every hundredth is about the one pod that really runs, the
// others each about one that is only in the API.
const (
	policyCount   = 1000
	policyHere    = 100
	policyChanges = 200
	policyRounds  = 20
	policyDials   = 100 // in each round, with policies and without
)

const policiesPath = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"

// Policies measures NetworkPolicies, with connections from a network outside of the cluster to a pod.
func Policies(r *bed.Report) error {
	return bed.WithDaemon(true, func(d *bed.Daemon) (err error) {
		out, err := newOutside()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, out.close()) }()
		return policyFigures(r, d, out)
	})
}

func policyFigures(r *bed.Report, d *bed.Daemon, out *outside) error {
	web := m{"apiVersion": "v1", "kind": "Pod", "metadata": m{"name": "web", "labels": m{"app": "web"}},
		"spec": m{"containers": []m{{"name": "c", "image": "minik8s/hello", "imagePullPolicy": "IfNotPresent"}}}}
	if err := d.Do("POST", bed.PodsPath, web, nil); err != nil {
		return err
	}
	var pod struct{ Status struct{ PodIP string } }
	if err := d.Until(time.Minute, func() bool {
		return d.Do("GET", bed.PodsPath+"/web", nil, &pod) == nil && pod.Status.PodIP != "" && out.dial(pod.Status.PodIP+":80", time.Second) == nil
	}); err != nil {
		return err
	}
	addr := pod.Status.PodIP + ":80"
	ours, err := fillPolicies(d)
	if err != nil {
		return err
	}
	gate := policy("gate", m{"app": "web"}, m{"ipBlock": m{"cidr": outsideAddr + "/32"}})
	var changes bed.Samples
	for range policyChanges {
		if err := d.Until(10*time.Second, func() bool { return out.dial(addr, 5*time.Millisecond) != nil }); err != nil {
			return fmt.Errorf("the pod is still open: %w", err)
		}
		began := time.Now()
		if err := d.Do("POST", policiesPath, gate, nil); err != nil {
			return err
		}
		if err := d.Until(10*time.Second, func() bool { return out.dial(addr, 2*time.Millisecond) == nil }); err != nil {
			return fmt.Errorf("the pod is still shut: %w", err)
		}
		changes = append(changes, time.Since(began))
		if err := d.Do("DELETE", policiesPath+"/gate", nil, nil); err != nil {
			return err
		}
	}
	with, without, err := alternately(d, out, addr, append(ours, gate))
	if err != nil {
		return err
	}
	slices.Sort(changes)
	what := fmt.Sprintf("%d NetworkPolicies over %d pods: ", policyCount, policyCount)
	r.Add(what+"change to effect, p99", bed.Ms(changes.P(99)), "ms", "<= 50 ms", fmt.Sprintf("from POST to the first connection; p50 %.1f ms", bed.Ms(changes.P(50))))
	r.Add("  connecting, of that without policies", bed.Ms(with.P(50))/bed.Ms(without.P(50)), "x", "<= 1.1",
		fmt.Sprintf("p50 %.3f ms, without %.3f; p99 %.2f and %.2f", bed.Ms(with.P(50)), bed.Ms(without.P(50)), bed.Ms(with.P(99)), bed.Ms(without.P(99))))
	return nil
}

// alternately connects with and without the policies about the pod, so that what else the machine does touches both alike.
func alternately(d *bed.Daemon, out *outside, addr string, list []m) (with, without bed.Samples, err error) {
	for range policyRounds {
		if err := d.Do("DELETE", policiesPath+"?labelSelector=about=web", nil, nil); err != nil {
			return nil, nil, err
		}
		if err := d.Until(10*time.Second, func() bool { return out.dial(addr, 5*time.Millisecond) == nil }); err != nil {
			return nil, nil, err
		}
		times, err := out.dials(addr, policyDials)
		if err != nil {
			return nil, nil, err
		}
		without = append(without, times...)
		for _, p := range list { // the one that lets us in comes last
			if err := d.Do("POST", policiesPath, p, nil); err != nil {
				return nil, nil, err
			}
		}
		if err := d.Until(10*time.Second, func() bool { return out.dial(addr, time.Second) == nil }); err != nil {
			return nil, nil, err
		}
		if times, err = out.dials(addr, policyDials); err != nil {
			return nil, nil, err
		}
		with = append(with, times...)
	}
	slices.Sort(with)
	slices.Sort(without)
	return with, without, nil
}

// fillPolicies makes the pods, which have addresses and never run, and the policies, and returns those about the pod that runs.
func fillPolicies(d *bed.Daemon) (ours []m, err error) {
	for i := range policyCount {
		name := fmt.Sprintf("p%04d", i)
		p := bed.WaitingPod(name)
		p["metadata"] = m{"name": name, "labels": m{"pod": name}}
		if err := d.Do("POST", bed.PodsPath, p, nil); err != nil {
			return nil, err
		}
		ip := fmt.Sprintf("10.245.%d.%d", i>>8, i&255)
		if err := d.Do("PUT", bed.PodsPath+"/"+name+"/status", m{"apiVersion": "v1", "kind": "Pod", "metadata": m{"name": name},
			"status": m{"phase": "Pending", "podIP": ip, "podIPs": []m{{"ip": ip}}}}, nil); err != nil {
			return nil, err
		}
		about := m{"pod": name}
		if i%policyHere == 0 {
			about = m{"app": "web"}
		}
		from := m{"podSelector": m{"matchLabels": m{"pod": fmt.Sprintf("p%04d", (i+1)%policyCount)}}}
		one := policy(name, about, from)
		if about["app"] != nil {
			ours = append(ours, one)
		}
		if err := d.Do("POST", policiesPath, one, nil); err != nil {
			return nil, err
		}
	}
	return ours, nil
}

// policy lets one peer reach port 80 of the pods with some labels.
func policy(name string, about, from m) m {
	labels := m{}
	if app, ok := about["app"]; ok {
		labels["about"] = app
	}
	return m{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": m{"name": name, "labels": labels},
		"spec": m{"podSelector": m{"matchLabels": about}, "policyTypes": []string{"Ingress"}, "ingress": []m{{"from": []m{from}, "ports": []m{{"port": 80}}}}}}
}

// outside is a network namespace on a wire to this one, which is its gateway.
type outside struct{ do chan func() }

const outsideAddr = "198.51.100.2"

func newOutside() (*outside, error) {
	o := &outside{do: make(chan func())}
	started := make(chan error)
	var thread int
	go func() {
		runtime.LockOSThread() // and never unlock it: the thread ends with the goroutine
		thread = unix.Gettid()
		err := unix.Unshare(unix.CLONE_NEWNET)
		started <- err
		for f := range o.do {
			f()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("a network namespace: %w", err)
	}
	for _, line := range []string{
		fmt.Sprintf("ip link add outside type veth peer name eth0 netns %d", thread),
		"ip addr add 198.51.100.1/24 dev outside", "ip link set outside up",
	} {
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w: %s", line, err, out), o.close())
		}
	}
	var err error
	o.inside(func() {
		var out []byte
		out, err = exec.Command("sh", "-c", "ip addr add "+outsideAddr+"/24 dev eth0 && ip link set eth0 up && ip route add default via 198.51.100.1").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("the network outside: %w: %s", err, out)
		}
	})
	if err != nil {
		return nil, errors.Join(err, o.close())
	}
	return o, nil
}

// inside runs f on the thread that is in the namespace.
func (o *outside) inside(f func()) {
	done := make(chan struct{})
	o.do <- func() { defer close(done); f() }
	<-done
}

func (o *outside) close() error {
	close(o.do)
	exec.Command("ip", "link", "del", "outside").Run() //nolint:errcheck // it is gone when the namespace is
	return nil
}

// dial connects and hangs up.
func (o *outside) dial(addr string, within time.Duration) (err error) {
	o.inside(func() {
		var c net.Conn
		if c, err = net.DialTimeout("tcp4", addr, within); err == nil {
			err = c.Close()
		}
	})
	return err
}

// dials are the times of n connections.
func (o *outside) dials(addr string, n int) (out bed.Samples, err error) {
	for range n {
		began := time.Now()
		if err := o.dial(addr, time.Second); err != nil {
			return nil, err
		}
		out = append(out, time.Since(began))
	}
	slices.Sort(out)
	return out, nil
}
