package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"minik8s/internal/bench/bed"
)

const (
	dnsServices = 200
	dnsRounds   = 3
	dnsSeconds  = 4
	dnsProbes   = 1000
	coreDNSPort = 5354
	coreDNSPath = "build/bench/coredns"
	ourDNS      = "10.96.0.10"
)

// DNS measures the node's DNS and a stock CoreDNS on the same core, by turns, with the same questions about the same
// cluster: CoreDNS reads it from our API, by its plugin kubernetes.
func DNS(r *bed.Report) error {
	if _, err := exec.LookPath("dnsperf"); err != nil {
		fmt.Fprintln(os.Stderr, "bench: dns is left out: there is no dnsperf, see deploy/benchtools.sh")
		return nil
	}
	if _, err := os.Stat(coreDNSPath); err != nil {
		fmt.Fprintln(os.Stderr, "bench: dns is left out: there is no CoreDNS, see deploy/benchtools.sh")
		return nil
	}
	return bed.WithDaemon(false, func(d *bed.Daemon) error { return dnsAgainst(r, d) })
}

func dnsAgainst(r *bed.Report, d *bed.Daemon) (err error) {
	dir, err := os.MkdirTemp("", "minik8s-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the bench's own
	questions, err := dnsQuestions(d, dir)
	if err != nil {
		return err
	}
	peer, err := startCoreDNS(d, dir)
	if err != nil {
		return err
	}
	defer func() {
		peer.Process.Kill() //nolint:errcheck // it may have ended
		peer.Wait()         //nolint:errcheck // it was killed
	}()
	ours, theirs := net.JoinHostPort(ourDNS, "53"), net.JoinHostPort("127.0.0.1", strconv.Itoa(coreDNSPort))
	for _, at := range []string{ours, theirs} {
		if err := d.Until(30*time.Second, func() bool { _, err := ask(at, 0); return err == nil }); err != nil {
			return fmt.Errorf("the DNS at %s does not answer: %w", at, err)
		}
	}
	// The server has one core, who asks the other.
	if err := errors.Join(pin(d.Cmd.Process.Pid, 0), pin(peer.Process.Pid, 0)); err != nil {
		return err
	}
	rate := map[string]float64{}
	for range dnsRounds {
		for _, at := range []string{ours, theirs} {
			n, err := dnsperf(questions, at, 0)
			if err != nil {
				return err
			}
			rate[at] += n / dnsRounds
		}
	}
	r.Add("DNS: answers of a stock CoreDNS on the same core", rate[ours]/rate[theirs], "x", ">= 1.2", fmt.Sprintf("%.0f/s and %.0f/s, %d Services", rate[ours], rate[theirs], dnsServices))
	times := map[string]time.Duration{}
	for _, at := range []string{ours, theirs} {
		if times[at], err = underHalf(questions, at, rate[at]/2); err != nil {
			return err
		}
	}
	r.Add("  p99 at half of that", bed.Ms(times[ours]), "ms", "<= 1 ms", fmt.Sprintf("CoreDNS %.2f ms at half of its own", bed.Ms(times[theirs])))
	return nil
}

// dnsQuestions makes Services, and a file with questions for them.
func dnsQuestions(d *bed.Daemon, dir string) (path string, err error) {
	var list strings.Builder
	for i := range dnsServices {
		svc := m{"apiVersion": "v1", "kind": "Service", "metadata": m{"name": fmt.Sprint("s", i)}, "spec": m{"ports": []m{{"port": 80}}}}
		if err := d.Do("POST", servicesPath, svc, nil); err != nil {
			return "", err
		}
		fmt.Fprintf(&list, "s%d.default.svc.cluster.local A\n", i)
	}
	path = filepath.Join(dir, "questions")
	return path, os.WriteFile(path, []byte(list.String()), 0o600)
}

// startCoreDNS starts a CoreDNS with the configuration that Kubernetes' installers give it, but for the address.
func startCoreDNS(d *bed.Daemon, dir string) (*exec.Cmd, error) {
	path := filepath.Join(dir, "Corefile")
	text := fmt.Sprintf(`.:%d {
  bind 127.0.0.1
  errors
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    kubeconfig %s
    pods insecure
    fallthrough in-addr.arpa ip6.arpa
    ttl 30
  }
  cache 30
  loadbalance
}
`, coreDNSPort, filepath.Join(d.Dir, "admin.kubeconfig"))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(coreDNSPath, "-conf", path)
	cmd.Stderr = &d.Log
	return cmd, cmd.Start()
}

// pin has all threads of a process run on one core; those that it starts later do so, too.
func pin(pid, core int) error {
	var set unix.CPUSet
	set.Set(core)
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, t := range tasks {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

var perSecond = regexp.MustCompile(`Queries per second:\s+([0-9.]+)`)

// dnsperf asks as fast as the server answers, or at a rate, and returns the answers per second.
func dnsperf(questions, at string, rate float64) (float64, error) {
	cmd := dnsperfCommand(context.Background(), questions, at, rate, dnsSeconds)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("dnsperf: %w: %s", err, out)
	}
	found := perSecond.FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("dnsperf says nothing of queries per second: %s", out)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

func dnsperfCommand(ctx context.Context, questions, at string, rate float64, seconds int) *exec.Cmd {
	host, port, _ := net.SplitHostPort(at)
	args := []string{"-c", "1", "dnsperf", "-s", host, "-p", port, "-d", questions, "-l", strconv.Itoa(seconds), "-c", "8"}
	if rate > 0 {
		args = append(args, "-Q", strconv.Itoa(int(rate)))
	}
	return exec.CommandContext(ctx, "taskset", args...)
}

// underHalf is the p99 of single questions while the server is asked at a rate.
func underHalf(questions, at string, rate float64) (time.Duration, error) {
	ctx, stop := context.WithCancel(context.Background())
	cmd := dnsperfCommand(ctx, questions, at, rate, 60)
	if err := cmd.Start(); err != nil {
		stop()
		return 0, err
	}
	defer cmd.Wait() //nolint:errcheck // it is killed
	defer stop()
	time.Sleep(time.Second) // until it asks at its rate
	var times bed.Samples
	for i := range dnsProbes {
		took, err := ask(at, i%dnsServices)
		if err != nil {
			return 0, err
		}
		times = append(times, took)
		time.Sleep(2 * time.Millisecond)
	}
	return times.P(99), nil
}

// ask asks for a Service's address.
func ask(at string, i int) (time.Duration, error) {
	q := new(dns.Msg).SetQuestion(fmt.Sprintf("s%d.default.svc.cluster.local.", i), dns.TypeA)
	c := dns.Client{Timeout: time.Second}
	answer, took, err := c.Exchange(q, at)
	if err == nil && len(answer.Answer) != 1 {
		err = fmt.Errorf("%s: %s, %d answers", q.Question[0].Name, dns.RcodeToString[answer.Rcode], len(answer.Answer))
	}
	return took, err
}
