package function

import (
	"context"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/function/plan"
	"minik8s/internal/idle"
)

// pool has the instances of one function, and the calls that wait for one of them.
type pool struct {
	mu        sync.Mutex
	fn        *minik8s.Function // as it was last seen; nil: see why
	why       error             // errGone or errStopped, once there is no function here
	version   string            // of the instances that get new calls
	instances map[types.UID]*instance
	waiting   []*waiter // in the order of arrival
	calls     int       // under way, with those that wait

	scaler plan.Scaler
	area   float64   // calls x seconds since it was last observed
	since  time.Time // until when area counts
	seen   time.Time // when it was last observed
	idle   time.Time // since when there is no call
	had    bool      // there was one
	opened func()    // is told of an instance more that takes calls
	stats  stats
}

// instance is a pod of a function.
type instance struct {
	pod, address, version string
	container             string // its ID: another one has begun to run if it differs
	busy                  int
	open                  bool // it accepts connections
	ending                bool
	leaving               bool               // it is to go, and gets no calls
	marked                bool               // its pod says so
	forget                context.CancelFunc // ends the look whether it accepts connections
	conns                 *idle.Pool         // the connections to it, while it has an address
}

// newInstance is a pod that may take calls.
func newInstance(pod, version string) *instance {
	return &instance{pod: pod, version: version, forget: func() {}}
}

// begin has it take calls at an address. forget ends the look whether it accepts connections there.
func (i *instance) begin(address, container string, forget context.CancelFunc) {
	dialer := &net.Dialer{Timeout: dialLimit}
	i.address, i.container, i.forget = address, container, forget
	i.conns = &idle.Pool{Address: address, Dial: dialer.DialContext, Most: idleConns, Time: connTime}
}

// part ends what leads to an instance: the look whether it accepts connections, and these; those that a call has end with it.
func (i *instance) part() {
	i.forget()
	i.forget = func() {}
	if i.conns != nil {
		i.conns.Close()
	}
}

// place is an instance with room for a call, and the way to its address then: that may change, as when the pod ends.
type place struct {
	*instance
	to *idle.Pool
}

// waiter is a call that waits.
type waiter struct {
	got  chan place // gets one, or is closed when there is no function here any more
	cold bool       // it waits for an instance to start
}

// usable reports whether an instance may get one more call; p.mu is held.
func (p *pool) usable(i *instance) bool {
	return i.open && !i.ending && !i.leaving && i.version == p.version && p.fn != nil && i.busy < int(p.fn.Spec.Concurrency)
}

// pick is the instance with the fewest calls that may get one more; nil if there is none. p.mu is held.
func (p *pool) pick() (best *instance) {
	for _, i := range p.instances {
		if p.usable(i) && (best == nil || i.busy < best.busy) {
			best = i
		}
	}
	return best
}

// count adds n to the calls under way; p.mu is held.
func (p *pool) count(n int, now time.Time) {
	p.area += float64(p.calls) * now.Sub(p.since).Seconds()
	p.since = now
	p.calls += n
	p.had = p.had || n > 0
	if n < 0 && p.calls == 0 || n > 0 {
		p.idle = now
	}
}

// acquire has a call wait for an instance, and adds it to what the instance has under way. wake is called if there is none with room.
// The error is ctx's, errGone or errStopped.
func (p *pool) acquire(ctx context.Context, wake func()) (at place, cold bool, err error) {
	p.mu.Lock()
	if p.fn == nil {
		defer p.mu.Unlock()
		return place{}, false, p.why
	}
	if len(p.waiting) == 0 {
		if i := p.pick(); i != nil {
			i.busy++
			at := place{i, i.conns}
			p.mu.Unlock()
			return at, false, nil
		}
	}
	w := &waiter{got: make(chan place, 1), cold: p.open() == 0}
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	wake()
	select {
	case at, ok := <-w.got:
		if !ok {
			p.mu.Lock()
			defer p.mu.Unlock()
			return place{}, w.cold, p.why
		}
		return at, w.cold, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = slices.DeleteFunc(p.waiting, func(o *waiter) bool { return o == w })
	select {
	case at, ok := <-w.got: // at the last moment
		if ok {
			p.free(at.instance)
		}
	default:
	}
	return place{}, w.cold, ctx.Err()
}

// open is how many instances take calls; p.mu is held.
func (p *pool) open() (n int) {
	for _, i := range p.instances {
		if i.open && !i.ending && i.version == p.version {
			n++
		}
	}
	return n
}

// release ends a call of an instance.
func (p *pool) release(i *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free(i)
}

func (p *pool) free(i *instance) {
	i.busy--
	p.serve()
}

// serve gives instances with room to those who wait; p.mu is held.
func (p *pool) serve() {
	for len(p.waiting) > 0 {
		i := p.pick()
		if i == nil {
			return
		}
		i.busy++
		p.waiting[0].got <- place{i, i.conns}
		p.waiting = p.waiting[1:]
	}
}

// end ends all waiting, and says why.
func (p *pool) end(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fn, p.why = nil, why
	for _, w := range p.waiting {
		close(w.got)
	}
	p.waiting = nil
	for _, i := range p.instances {
		i.open = false
		i.part()
	}
}

// knows reports whether the function here is a question's, in its version or a later one.
func (p *pool) knows(q question) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fn != nil && (q.uid == "" || p.fn.UID == q.uid && p.fn.Generation >= q.generation)
}

// follow takes over the function as it is now, and the version that new calls get. changed: it is another one, or another version.
func (p *pool) follow(fn *minik8s.Function, version string) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why != nil {
		return false // it has ended meanwhile
	}
	changed = p.fn == nil || p.fn.UID != fn.UID || p.fn.Generation != fn.Generation
	p.fn, p.version = fn, version
	p.scaler.Target, p.scaler.Stable = float64(fn.Spec.TargetConcurrency), time.Duration(fn.Spec.IdleSeconds)*time.Second
	p.serve()
	return changed
}

// pod takes over a change of one of its pods. look is called in a goroutine of its own for one that has begun to run, with what
// it calls once the pod accepts connections.
func (p *pool) pod(old, now *corev1.Pod, look func(ctx context.Context, address string, accepts func())) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why != nil {
		return // nobody would end the look
	}
	if now == nil || old != nil && old.UID != now.UID {
		if i := p.instances[old.UID]; i != nil {
			i.ending = true
			i.part()
			delete(p.instances, old.UID)
		}
	}
	if now == nil {
		return
	}
	i := p.instances[now.UID]
	address, container := addressOf(now)
	switch {
	case address == "" || now.DeletionTimestamp != nil:
		if i != nil { // it has ended, or is about to
			i.open, i.ending, i.address = false, now.DeletionTimestamp != nil, ""
			i.part()
		}
	case i == nil || i.address != address || i.container != container:
		ctx, cancel := context.WithCancel(context.Background())
		if i == nil {
			i = newInstance(now.Name, now.Labels[plan.VersionLabel])
			p.instances[now.UID] = i
		} else {
			i.part()
			i.open = false
		}
		i.begin(address, container, cancel)
		go look(ctx, address, func() { p.accepts(i, address) })
	}
	if i != nil {
		i.marked = now.Annotations[corev1.PodDeletionCost] != ""
	}
}

// leave has n of have instances go: first those that do not run yet, then those without a call, and from now on they get none. It returns how many
// may go, and the pods that are to be marked for it, and those whose mark is to be taken away again.
func (p *pool) leave(n, have int) (may int, mark, unmark []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	run := 0
	for _, i := range p.instances {
		if i.version == p.version && !i.ending {
			run++
		}
	}
	may = min(n, max(have-run, 0))
	n -= may
	for _, i := range p.instances {
		if i.version != p.version || i.ending {
			continue
		}
		i.leaving = i.busy == 0 && n > 0
		if i.leaving {
			n--
			may++
		}
		switch {
		case i.leaving && !i.marked:
			mark = append(mark, i.pod)
		case !i.leaving && i.marked:
			unmark = append(unmark, i.pod)
		}
	}
	return may, mark, unmark
}

// stay has all instances take calls again that were to go and are still there.
func (p *pool) stay() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.instances {
		i.leaving = false
	}
	p.serve()
}

// accepts notes that an instance accepts connections.
func (p *pool) accepts(i *instance, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i.address == address && !i.ending {
		i.open = true
		p.serve()
		p.opened()
	}
}

// refused notes that an instance did not accept a connection: it gets calls again once it does.
func (p *pool) refused(i *instance, look func(ctx context.Context, address string, accepts func())) {
	p.close(i, 0, look)
}

// broke notes that an instance has broken off a call that it had. Most often its program has ended, and for a moment the kernel
// accepts connections for it still: it gets calls again once another container has begun, or else after a while.
func (p *pool) broke(i *instance, look func(ctx context.Context, address string, accepts func())) {
	p.close(i, brokenFor, look)
}

// brokenFor is how long an instance gets no calls that has broken one off and runs on.
const brokenFor = time.Second

// close has an instance get no calls until it accepts connections again, which is looked for after a while.
func (p *pool) close(i *instance, after time.Duration, look func(ctx context.Context, address string, accepts func())) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why != nil || !i.open || i.address == "" {
		return
	}
	i.open = false
	ctx, cancel := context.WithCancel(context.Background())
	i.forget = cancel
	address := i.address
	go func() {
		select {
		case <-time.After(after):
			look(ctx, address, func() { p.accepts(i, address) })
		case <-ctx.Done():
		}
	}()
}

// addressOf is where a pod takes calls, and the ID of the container that does; empty while none runs, and of
// a pod that only has the labels of an instance, or is not ready: as when its node is lost.
func addressOf(pod *corev1.Pod) (address, container string) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse {
			return "", ""
		}
	}
	if pod.Status.PodIP == "" || len(pod.Status.ContainerStatuses) == 0 || len(pod.Spec.Containers[0].Ports) == 0 || pod.Status.ContainerStatuses[0].State.Running == nil {
		return "", ""
	}
	return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(pod.Spec.Containers[0].Ports[0].ContainerPort))), pod.Status.ContainerStatuses[0].ContainerID
}

// called reports whether there was a call since this master leads.
func (p *pool) called() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.had
}

// older is how many calls instances of other versions have.
func (p *pool) older() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.instances {
		if i.version != p.version {
			n += i.busy
		}
	}
	return n
}

// numbers are how many instances there are, how many take calls, and when there last was a call.
func (p *pool) numbers() (all, ready int32, last time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int32(len(p.instances)), int32(p.open()), p.idle
}

// desired is how many instances there should be, where so many are asked for now, and whether the load has to be looked at again later.
func (p *pool) desired(now time.Time, have int32) (want int32, again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fn == nil {
		return 0, false
	}
	if took := now.Sub(p.seen); took >= plan.Tick {
		p.count(0, now)
		if took < 2*plan.Tick || p.area > 0 {
			p.scaler.Observe(now, p.area/took.Seconds())
		}
		p.seen, p.area = now, 0
	}
	s := &p.fn.Spec
	want = p.scaler.Desired(now, p.calls, have, int32(p.open()), p.idle)
	if p.calls > 0 || now.Sub(p.idle) < time.Duration(s.IdleSeconds)*time.Second { // those that came with it go when idle, and not before
		want = max(want, min(have, s.InitialInstances))
	}
	want = min(max(want, s.MinInstances), s.MaxInstances)
	p.stats.desired = want
	return want, want > s.MinInstances || p.calls > 0
}
