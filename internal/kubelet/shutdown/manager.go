package shutdown

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/logind"
)

// Config is what a Manager is made from. Open and Log must be set, unless Periods.All is 0.
type Config struct {
	Periods Periods
	// Open connects to what shuts the machine down. The error is logind.ErrNone where there is nothing of that kind.
	Open func(ctx context.Context) (Conn, error)
	Log  *slog.Logger
}

// Conn is a connection to what shuts the machine down: see logind.Conn.
type Conn interface {
	Next(ctx context.Context) (down bool, err error)
	ShuttingDown(ctx context.Context) (bool, error)
	RaiseMaxDelay(ctx context.Context, wish time.Duration) (granted time.Duration, err error)
	Inhibit(ctx context.Context, who, why string) (io.Closer, error)
	Close()
}

// Node is the kubelet.
type Node interface {
	// SetShuttingDown says whether the machine shuts down: then the node takes no new pods, and the Node says so. It
	// returns when the API knows, or when ctx ends.
	SetShuttingDown(ctx context.Context, down bool)
	// Pods are the pods of the node.
	Pods() []*corev1.Pod
	// EndPod ends a pod because the machine shuts down, within a time. The channel is closed when nothing of it runs and
	// the API has its final status.
	EndPod(uid types.UID, within time.Duration) <-chan struct{}
}

// Manager ends the pods of a node before its machine shuts down.
type Manager struct {
	cfg  Config
	node Node
	down bool // as the node was last told
	seen bool // there was a connection: something here does say when
}

// New makes a Manager; it does nothing before Run.
func New(cfg Config, n Node) *Manager { return &Manager{cfg: cfg, node: n} }

const (
	minPause = time.Second
	maxPause = time.Minute
	// tellTime is how long the pods' end waits for the Node to say why. New pods are then made elsewhere at once.
	tellTime = time.Second
)

// Run ends pods whenever the machine shuts down, until ctx ends. It returns at once if that is not wanted, or if there
// is nothing here that says when.
func (m *Manager) Run(ctx context.Context) {
	if m.cfg.Periods.All == 0 {
		return
	}
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		began := time.Now()
		err := m.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, logind.ErrNone) && !m.seen:
			m.cfg.Log.Debug("pods do not end before this machine shuts down", "error", err)
			return
		}
		if time.Since(began) > maxPause {
			pause = minPause
		}
		m.cfg.Log.Warn("a shutdown of this machine would not be noticed, trying again", "error", err, "in", pause)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// follow connects, and ends pods at each shutdown until the connection or ctx ends.
func (m *Manager) follow(ctx context.Context) error {
	c, err := m.cfg.Open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	m.seen = true
	periods, err := m.agree(ctx, c)
	if err != nil {
		return err
	}
	down, err := c.ShuttingDown(ctx)
	if err != nil {
		return err
	}
	if down { // the daemon was started in the middle of it, and too late for a lock
		m.end(ctx, periods)
	}
	var lock io.Closer
	defer func() {
		if lock != nil {
			lock.Close() //nolint:errcheck // the kernel releases it either way
		}
	}()
	for {
		if !down {
			m.tell(ctx, false)
		}
		if !down && lock == nil {
			if lock, err = c.Inhibit(ctx, "minik8sd", "Pods end before the machine shuts down"); err != nil {
				return err
			}
		}
		now, err := c.Next(ctx)
		if err != nil {
			return err
		}
		if now && !down {
			m.end(ctx, periods)
			lock.Close() //nolint:errcheck // as above
			lock = nil
		}
		down = now
	}
}

// agree asks for the time that the pods may take, and returns what of it they get.
func (m *Manager) agree(ctx context.Context, c Conn) (Periods, error) {
	asked := m.cfg.Periods
	granted, err := c.RaiseMaxDelay(ctx, asked.All+margin)
	if err != nil && granted == 0 {
		return asked, err
	}
	got := asked.Within(granted)
	if got != asked {
		m.cfg.Log.Warn("this machine waits for less than shutdown-grace-period when it shuts down, so pods get less: set InhibitDelayMaxSec in logind.conf",
			"asked", asked.All, "machine", granted, "pods", got.All, "of that critical pods", got.Critical, "error", err)
	}
	return got, nil
}

// tell tells the node what it was not told yet.
func (m *Manager) tell(ctx context.Context, down bool) {
	if m.down == down {
		return
	}
	m.down = down
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	m.node.SetShuttingDown(ctx, down)
}

// end ends all pods, group by group, and then those that have arrived meanwhile: the scheduler may have assigned them
// before it saw that the machine shuts down. They are refused, and others are made elsewhere once the API knows.
func (m *Manager) end(ctx context.Context, p Periods) {
	began := time.Now()
	m.cfg.Log.Warn("the machine shuts down, pods are ended", "within", p.All)
	m.tell(ctx, true)
	latest := began // when a group's time is over at the latest: all of them together have no more than was asked for
	asked := map[types.UID]bool{}
	for groups := m.groups(asked, p); len(groups) > 0 && time.Since(began) < p.All+margin; groups = m.groups(asked, p) {
		for _, g := range groups {
			ended := make([]<-chan struct{}, len(g.Pods))
			for i, pod := range g.Pods {
				ended[i] = m.node.EndPod(pod.UID, g.Period)
			}
			if latest = latest.Add(g.Period + margin/2); latest.After(began.Add(p.All + margin)) {
				latest = began.Add(p.All + margin)
			}
			left := m.await(ctx, ended, min(g.Period+margin/2, time.Until(latest)))
			if ctx.Err() != nil {
				return // the daemon ends, which is no reason to end more pods
			}
			if left > 0 {
				m.cfg.Log.Warn("pods have not ended in time, the machine does not wait for them", "pods", left, "after", g.Period)
			}
		}
	}
	m.cfg.Log.Warn("pods are ended, the machine may shut down", "after", time.Since(began).Round(time.Millisecond))
}

// groups are the groups of pods that were not asked to end yet, and notes that they are now.
func (m *Manager) groups(asked map[types.UID]bool, p Periods) []Group {
	pods := slices.DeleteFunc(slices.Clone(m.node.Pods()), func(pod *corev1.Pod) bool { return asked[pod.UID] })
	for _, pod := range pods {
		asked[pod.UID] = true
	}
	return Groups(pods, p)
}

// await waits for all, at most so long, and returns how many are left.
func (m *Manager) await(ctx context.Context, ended []<-chan struct{}, within time.Duration) (left int) {
	t := time.NewTimer(within)
	defer t.Stop()
	for i, ch := range ended {
		select {
		case <-ch:
		case <-t.C:
			return len(ended) - i
		case <-ctx.Done():
			return len(ended) - i
		}
	}
	return 0
}
