package containerd

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"minik8s/internal/kubelet/cri"
)

// stale is how long what was read of a pod's network counts while nothing crosses its link: what a pod fails to send, and what goes
// through an interface that its program has made, is not seen from outside.
const stale = 10 * time.Second

// traffic is what was read last of the pods' networks. Reading a pod's own counters takes 24 µs, and those of the host's ends of all
// links, at once, 1 µs each: so a pod is read only when its host's end has counted something. The counters are the pod's own all the
// same, since the two ends do not count the same drops and errors. It is safe for concurrent use.
type traffic struct {
	read func(pid uint32) *cri.Network

	mu sync.Mutex
	of map[string]crossed // by the name of the host's end
}

// crossed is what a pod's network had counted when its host's end had.
type crossed struct {
	host string // its line of /proc/net/dev
	at   time.Time
	pod  *cri.Network
}

func newTraffic() *traffic { return &traffic{read: networkOf} }

// links is one look at all pods. It is safe for concurrent use, too.
type links struct {
	*traffic
	now   time.Time
	hosts map[string]string // lines by names
	next  map[string]crossed
}

// look reads the host's ends first, so that what crosses a link meanwhile is new at the next look.
func (t *traffic) look(now time.Time) *links {
	l := &links{traffic: t, now: now, hosts: map[string]string{}, next: map[string]crossed{}}
	text, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		return l // every pod is read
	}
	for line := range strings.Lines(string(text)) {
		if name, counts, ok := strings.Cut(line, ":"); ok {
			l.hosts[strings.TrimSpace(name)] = counts
		}
	}
	return l
}

// of is the network of a pod, by its link and a process there; nil if the process has ended. It must not be changed.
func (l *links) of(link string, pid uint32) *cri.Network {
	host, known := l.hosts[link]
	l.mu.Lock()
	c, ok := l.traffic.of[link]
	l.mu.Unlock()
	if age := l.now.Sub(c.at); !known || !ok || c.host != host || age < 0 || age >= stale {
		c = crossed{strings.Clone(host), l.now, l.read(pid)} // a clone: the text of all links goes
	}
	if c.pod != nil {
		l.mu.Lock()
		l.next[link] = c
		l.mu.Unlock()
	}
	return c.pod
}

// end forgets the pods that were not there.
func (l *links) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.traffic.of = l.next
}

// networkOf reads what went through the interfaces of a process' network, but loopback; nil if the process has ended.
// There is one such interface in a pod; if its program has made more, they count too.
func networkOf(pid uint32) *cri.Network {
	f, err := os.Open(fmt.Sprintf("/proc/%d/net/dev", pid))
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	var out *cri.Network
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, rest, ok := strings.Cut(lines.Text(), ":")
		words := strings.Fields(rest)
		if name = strings.TrimSpace(name); !ok || name == "lo" || len(words) < 16 {
			continue
		}
		if out == nil {
			out = &cri.Network{Interface: name}
		}
		for i, to := range []*uint64{&out.Received, &out.PacketsIn, &out.ErrorsIn, &out.DroppedIn, nil, nil, nil, nil,
			&out.Sent, &out.PacketsOut, &out.ErrorsOut, &out.DroppedOut} {
			if n, err := strconv.ParseUint(words[i], 10, 64); err == nil && to != nil {
				*to += n
			}
		}
	}
	return out
}
