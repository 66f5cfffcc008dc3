package metrics

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	cadvisor "github.com/google/cadvisor/client/v2"
	v2 "github.com/google/cadvisor/info/v2"

	"minik8s/internal/rates"
)

// Config is what a Collector is made from.
type Config struct {
	// Kubelets is a transport for requests to https://NODE/PATH, by the API server's certificate.
	Kubelets http.RoundTripper
	// CAdvisor, if set, is the URL of a cAdvisor on each node, in which NodePlace stands for the node's address.
	CAdvisor string
	// Address returns a node's address, for CAdvisor.
	Address func(ctx context.Context, node string) (string, error)
	// Window is over how long a CPU usage is averaged; 0: 15 s, as metrics-server's.
	Window time.Duration
	Log    *slog.Logger
}

// Usage is what a container or node uses.
type Usage struct {
	CPU    float64 // cores, averaged over Window until Time
	Memory uint64  // bytes of working set
	Time   time.Time
	Window time.Duration
}

// Node is what a node uses, and its containers by their ids. Those whose rate is not known (yet) are missing.
type Node struct {
	Usage      Usage
	Containers map[string]Usage
}

const (
	// fresh is how old an answer may be that was given to another question.
	fresh = time.Second
	// kept is how many samples are kept of a container: a window of 15 s of a second each; of a longer window some.
	kept = 20
	// pause is how long a node is left alone that did not answer once, and maxPause one that never does.
	pause    = 5 * time.Second
	maxPause = time.Minute
	// forgotten is when a node is dropped after the last question about it, as one that was removed, and all after the last one.
	forgotten = 10 * time.Minute
)

// Collector asks nodes what they use. Its methods are safe for concurrent use.
type Collector struct {
	cfg  Config
	base string
	now  func() time.Time

	mu     sync.Mutex
	nodes  map[string]*node
	forget *time.Timer
	stop   func()
}

// node is what is remembered of a node. Its lock is held while the node is asked, so that it is asked once for all who
// want to know.
type node struct {
	mu     sync.Mutex
	asked  time.Time
	err    error              // of the last time
	failed int                // times in a row
	series map[string]*series // by cgroup; "/" is the node
}

type series struct {
	points []rates.Point
	memory uint64
}

// New makes a Collector; Close it at the end.
func New(cfg Config) *Collector {
	if cfg.Window == 0 {
		cfg.Window = 15 * time.Second
	}
	c := &Collector{cfg: cfg, now: time.Now, nodes: map[string]*node{}}
	c.base, c.stop = register(toNodes{cfg.Kubelets, cfg.CAdvisor, cfg.Address})
	c.forget = time.AfterFunc(forgotten, c.drop)
	return c
}

// Close ends it.
func (c *Collector) Close() {
	c.forget.Stop()
	c.stop()
}

func (c *Collector) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.nodes)
}

// prune drops the nodes that nobody has asked about for long.
func (c *Collector) prune() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, n := range c.nodes {
		if !n.mu.TryLock() { // it is asked at this moment
			continue
		}
		if !n.asked.IsZero() && c.now().Sub(n.asked) >= forgotten {
			delete(c.nodes, name)
		}
		n.mu.Unlock()
	}
}

// Nodes returns what nodes use, by their names. Those that do not answer are missing. The error is ctx'.
func (c *Collector) Nodes(ctx context.Context, names []string) (map[string]Node, error) {
	c.forget.Reset(forgotten)
	c.prune()
	var mu sync.Mutex
	out := make(map[string]Node, len(names))
	var asking sync.WaitGroup
	for _, name := range names {
		asking.Go(func() {
			x, err := c.node(ctx, name)
			if err != nil {
				c.cfg.Log.Debug("a node does not say what it uses", "node", name, "error", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out[name] = x
		})
	}
	asking.Wait()
	return out, ctx.Err()
}

// node asks a node, unless it was asked just now.
func (c *Collector) node(ctx context.Context, name string) (Node, error) {
	c.mu.Lock()
	n := c.nodes[name]
	if n == nil {
		n = &node{series: map[string]*series{}}
		c.nodes[name] = n
	}
	c.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	age := c.now().Sub(n.asked)
	if n.asked.IsZero() || age >= n.rest() {
		if ctx.Err() != nil {
			return Node{}, ctx.Err()
		}
		infos, err := c.ask(name, age < rates.Longest && n.err == nil)
		n.asked, n.err = c.now(), err
		if n.failed++; err == nil {
			n.failed = 0
			n.learn(infos, c.cfg.Window)
		}
	}
	if n.err != nil {
		return Node{}, n.err
	}
	return n.usage(c.cfg.Window), nil
}

// rest is how long a node is not asked again: longer each time that it does not answer, so that lost nodes do not delay
// every question.
func (n *node) rest() time.Duration {
	if n.err == nil {
		return fresh
	}
	return min(pause<<min(n.failed-1, 4), maxPause)
}

// ask asks for the last sample, or, where nothing is known of before, for two, so that there is a rate at once.
func (c *Collector) ask(name string, known bool) (map[string]v2.ContainerInfo, error) {
	client, err := cadvisor.NewClient(c.base + name)
	if err != nil {
		return nil, err
	}
	count, age := kept, fresh // what a node has seen before this master asked counts, too, as after a change of the leader
	if known {
		count = 1
	}
	infos, err := client.Stats("/", &v2.RequestOptions{IdType: v2.TypeName, Count: count, Recursive: true, MaxAge: &age})
	if err != nil {
		return nil, err
	}
	if _, ok := infos[machine]; ok {
		return infos, nil
	}
	// A cAdvisor of its own tells of the machine only there. It has samples as old as it is: those of the last moments are enough.
	of, err := client.MachineStats()
	if err != nil {
		return nil, err
	}
	whole := v2.ContainerInfo{}
	for _, x := range of[max(0, len(of)-kept):] {
		whole.Stats = append(whole.Stats, &v2.ContainerStats{Timestamp: x.Timestamp, Cpu: x.Cpu, Memory: x.Memory})
	}
	infos[machine] = whole
	return infos, nil
}

// machine is the cgroup of all there is.
const machine = "/"

// learn remembers the samples, and forgets what is gone.
func (n *node) learn(infos map[string]v2.ContainerInfo, window time.Duration) {
	next := make(map[string]*series, len(infos))
	for cgroup, info := range infos {
		s := n.series[cgroup]
		if s == nil {
			s = &series{}
		}
		for _, x := range info.Stats {
			if x == nil || x.Cpu == nil || x.Memory == nil {
				continue
			}
			s.add(rates.Point{Time: x.Timestamp, Value: x.Cpu.Usage.Total}, x.Memory.WorkingSet, window)
		}
		if len(s.points) > 0 {
			next[cgroup] = s
		}
	}
	n.series = next
}

// add appends a sample that is newer than those there are. A counter that has gone back counts something else.
func (s *series) add(p rates.Point, memory uint64, window time.Duration) {
	if k := len(s.points); k > 0 {
		last := s.points[k-1]
		if !p.Time.After(last.Time) {
			return
		}
		if p.Value < last.Value {
			s.points = nil
		}
	}
	if len(s.points) == kept {
		i := s.least(p.Time.Add(-window))
		s.points = append(s.points[:i], s.points[i+1:]...)
	}
	s.points, s.memory = append(s.points, p), memory
}

// least is the point that is missed least: the oldest, if the next one reaches back as far as is wanted, or else the one between
// two that are closest to each other. So what is asked often is known no shorter.
func (s *series) least(from time.Time) (at int) {
	if !s.points[1].Time.After(from) {
		return 0
	}
	closest := time.Duration(math.MaxInt64)
	for i := 1; i < len(s.points)-1; i++ {
		if gap := s.points[i+1].Time.Sub(s.points[i-1].Time); gap < closest {
			at, closest = i, gap
		}
	}
	return at
}

func (n *node) usage(window time.Duration) Node {
	out := Node{Containers: make(map[string]Usage, len(n.series))}
	for cgroup, s := range n.series {
		rate, over, ok := rates.Of(len(s.points), func(i int) rates.Point { return s.points[i] }, window)
		if !ok {
			continue
		}
		u := Usage{CPU: rate / 1e9, Memory: s.memory, Time: s.points[len(s.points)-1].Time, Window: over}
		if cgroup == machine {
			out.Usage = u
			continue
		}
		out.Containers[containerID(cgroup)] = u
	}
	return out
}

// containerID is the id of the container whose cgroup this is. Where systemd makes the cgroups, as for other runtimes
// that a cAdvisor sees, it is part of a unit's name: "cri-containerd-ID.scope".
func containerID(cgroup string) string {
	name := strings.TrimSuffix(path.Base(cgroup), ".scope")
	return name[strings.LastIndexByte(name, '-')+1:]
}
