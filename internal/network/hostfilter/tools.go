package hostfilter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"minik8s/internal/nft"
)

// toolTime bounds a call of one of the host's tools.
const toolTime = 5 * time.Second

// tool runs one of the host's programs. The error is exec.ErrNotFound if it is not installed.
type tool func(name string, args ...string) (string, error)

func runTool(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second // for its child processes that hold its output open
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return string(out), nil
}

// firewalld is changed by its own client: only the owner of a table can change it.
type firewalld struct{ run tool }

func (f firewalld) open(pods netip.Prefix, want map[nft.Hook][]nft.Accept) (bool, error) {
	for _, what := range firewalldNeeds(pods, want) {
		if _, err := f.run("firewall-cmd", what.zone, "--query-"+what.item); err == nil {
			continue
		}
		if _, err := f.run("firewall-cmd", what.zone, "--add-"+what.item); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (f firewalld) close(pods netip.Prefix, want map[nft.Hook][]nft.Accept) error {
	var errs []error
	for _, what := range firewalldNeeds(pods, want) {
		if _, err := f.run("firewall-cmd", what.zone, "--query-"+what.item); err != nil {
			continue // it is not installed, or firewalld does not run
		}
		_, err := f.run("firewall-cmd", what.zone, "--remove-"+what.item)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

type firewalldNeed struct{ zone, item string }

// firewalldNeeds are the sources to trust, and the ports to open for others: those of the tunnel.
func firewalldNeeds(pods netip.Prefix, want map[nft.Hook][]nft.Accept) []firewalldNeed {
	out := []firewalldNeed{{"--zone=trusted", "source=" + pods.String()}}
	for _, a := range want[nft.Input] {
		need := firewalldNeed{"--zone=trusted", "source=" + a.From.String()}
		if !a.From.IsValid() { // --quiet stands for the default zone
			need = firewalldNeed{"--quiet", fmt.Sprintf("port=%d/%s", a.Port, a.Protocol)}
		}
		if !slices.Contains(out, need) {
			out = append(out, need)
		}
	}
	return out
}

// legacy is the kernel's older iptables. Only its own tool can change it, a whole table at a time, and it sends no
// events. The tool is called only if the filter table exists, because listing the table creates it.
type legacy struct {
	run   tool
	inUse func() bool
	tag   string
}

// legacyInUse reports whether the filter table of the older iptables is there in this network namespace.
func legacyInUse() bool {
	data, err := os.ReadFile("/proc/thread-self/net/ip_tables_names")
	return err == nil && slices.Contains(strings.Fields(string(data)), "filter")
}

var legacyChains = map[nft.Hook]string{nft.Forward: "FORWARD", nft.Input: "INPUT", nft.Output: "OUTPUT"}

const legacyTool = "iptables-legacy"

func (l legacy) open(_ netip.Prefix, want map[nft.Hook][]nft.Accept) (bool, error) {
	if !l.inUse() {
		return false, nil
	}
	out, err := l.run(legacyTool, "-w", "-S")
	if errors.Is(err, exec.ErrNotFound) {
		return false, fmt.Errorf("the filter table of iptables-legacy is in use, and there is no %s to see whether it stops pods' traffic", legacyTool)
	}
	if err != nil {
		return false, err
	}
	var errs []error
	for hook, chain := range legacyChains {
		if legacyRight(out, chain, l.tag, want[hook]) {
			continue
		}
		errs = append(errs, l.remove(out, chain))
		for _, a := range slices.Backward(want[hook]) {
			_, err := l.run(legacyTool, append([]string{"-w", "-I", chain, "1"}, l.args(a)...)...)
			errs = append(errs, err)
		}
	}
	return true, errors.Join(errs...)
}

// legacyRight reports, from the output of iptables -S, whether a chain has our rules first, or needs none because its
// policy is accept and it has no rules.
func legacyRight(saved, chain, tag string, want []nft.Accept) bool {
	policy, rules := "", []string{}
	for line := range strings.Lines(saved) {
		f := strings.Fields(line)
		switch {
		case len(f) == 3 && f[0] == "-P" && f[1] == chain:
			policy = f[2]
		case len(f) > 2 && f[0] == "-A" && f[1] == chain:
			rules = append(rules, line)
		}
	}
	if policy == "ACCEPT" && len(rules) == 0 {
		return true
	}
	if len(rules) < len(want) {
		return false
	}
	for i, a := range want {
		if !strings.Contains(rules[i], `"`+tag+": "+a.String()+`"`) {
			return false
		}
	}
	return true
}

func (l legacy) args(a nft.Accept) []string {
	var out []string
	if a.From.IsValid() {
		out = append(out, "-s", a.From.String())
	}
	if a.To.IsValid() {
		out = append(out, "-d", a.To.String())
	}
	if a.Protocol != "" {
		out = append(out, "-p", a.Protocol)
	}
	if a.Port != 0 {
		out = append(out, "--dport", fmt.Sprint(a.Port))
	}
	if a.Replies {
		out = append(out, "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED")
	}
	return append(out, "-m", "comment", "--comment", l.tag+": "+a.String(), "-j", "ACCEPT")
}

// remove removes our rules from a chain by their numbers, the last first.
func (l legacy) remove(saved, chain string) error {
	number, ours := 0, []int{}
	for line := range strings.Lines(saved) {
		if strings.HasPrefix(line, "-A "+chain+" ") {
			number++
			if strings.Contains(line, `"`+l.tag+":") {
				ours = append(ours, number)
			}
		}
	}
	for _, i := range slices.Backward(ours) {
		if _, err := l.run(legacyTool, "-w", "-D", chain, fmt.Sprint(i)); err != nil {
			return err
		}
	}
	return nil
}

func (l legacy) close(_ netip.Prefix, _ map[nft.Hook][]nft.Accept) error {
	if !l.inUse() {
		return nil
	}
	out, err := l.run(legacyTool, "-w", "-S")
	if errors.Is(err, exec.ErrNotFound) {
		return nil // then it could not have added rules either
	}
	errs := []error{err}
	for _, chain := range legacyChains {
		errs = append(errs, l.remove(out, chain))
	}
	return errors.Join(errs...)
}
