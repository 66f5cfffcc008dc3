package storage

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// interval is the least time between two measurings, and share how many times as long as a measuring takes is the time
	// to the next.
	interval = time.Minute
	share    = 100
	// longest bounds the time between two measurings, and stale how old what was measured may be.
	longest = 15 * time.Minute
	stale   = longest + 10*time.Minute
	// patience bounds the measuring of one place: what a pod does with its files must not hide what others take. Such a place is
	// measured after those that are known to be quick.
	patience = 10 * time.Second
	// whole bounds all of it.
	whole = 5 * time.Minute
)

// Kind says what files are for.
type Kind int

// The kinds of places.
const (
	Layer  Kind = iota // what a container has written to its root
	Log                // what a container has said
	Volume             // of a pod
	Images             // all that the runtime keeps: images, and what containers write above them
)

// Place is a directory with files of a container or a pod.
type Place struct {
	Kind Kind
	// PodUID is the pod's, ContainerID that of the container whose layer or log it is, Name the volume's.
	PodUID, ContainerID, Name string
	Dir                       string
}

// Measured is a place with what it takes, and the file system it is on.
type Measured struct {
	Place
	Use
	FileSystem FileSystem
}

// Reading is what was measured last.
type Reading struct {
	Time time.Time
	// Data is the file system of the daemon's data directory: images, containers, logs and volumes on disk are on it.
	Data FileSystem
	// Mounted are the machine's: finding them among the mounts of pods takes milliseconds.
	Mounted []FileSystem
	// Containers are the layer and the log of each container, by its id, of those of which both could be measured. Volumes are
	// those of each pod, by its UID, and Partly has the pods of which not all could be.
	Containers map[string]*Container
	Volumes    map[string][]Measured
	Partly     map[string]bool
	Images     *Use // nil: not known
}

// Container is what a container takes on disk.
type Container struct{ Layer, Log Use }

// Meter measures places. Its methods are safe for concurrent use.
type Meter struct {
	data   string
	places func(context.Context) ([]Place, error)
	now    func() time.Time
	walk   func(context.Context, string) (Use, error)

	mu   sync.Mutex
	busy bool
	last *Reading
	cost time.Duration
	slow map[string]bool // places that took longer than patience; of measure alone
}

// New returns a meter of the places there are at each measuring; data is the daemon's data directory.
func New(data string, places func(context.Context) ([]Place, error)) *Meter {
	return &Meter{data: data, places: places, now: time.Now, walk: Tree}
}

// Reading returns what was measured last, which must not be changed; nil: nothing (of late). It has the meter measure again if it
// is time.
func (m *Meter) Reading() *Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if m.last != nil {
		if age := now.Sub(m.last.Time); age < 0 || age > stale {
			m.last = nil
		}
	}
	if !m.busy && (m.last == nil || now.Sub(m.last.Time) >= min(max(interval, share*m.cost), longest)) {
		m.busy = true
		go m.measure()
	}
	return m.last
}

func (m *Meter) measure() {
	ctx, cancel := context.WithTimeout(context.Background(), whole)
	defer cancel()
	began := m.now()
	next := m.read(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy = false
	m.cost = m.now().Sub(began)
	if next != nil {
		m.last = next
	}
}

// read measures all places. What could not be measured is left out; nil if nothing can be.
func (m *Meter) read(ctx context.Context) *Reading {
	places, err := m.places(ctx)
	if err != nil {
		return nil
	}
	out := &Reading{Time: m.now(), Containers: map[string]*Container{}, Volumes: map[string][]Measured{}, Partly: map[string]bool{}}
	if out.Data, err = Of(m.data); err != nil {
		return nil
	}
	out.Mounted = Mounted()
	slices.SortStableFunc(places, func(a, b Place) int { return order(m.slow[a.Dir]) - order(m.slow[b.Dir]) })
	slow, unknown := map[string]bool{}, map[string]bool{} // directories, containers
	for _, p := range places {
		use, err := m.tree(ctx, p.Dir)
		if p.Kind == Images {
			if slow[p.Dir] = err != nil; err == nil {
				out.Images = &use
			}
			continue
		}
		if err != nil && !gone(err) {
			slow[p.Dir] = true
			unknown[p.ContainerID] = true
			out.Partly[p.PodUID] = true
			continue
		}
		if p.Kind == Volume {
			v := Measured{Place: p, Use: use, FileSystem: FileSystem{Time: m.now()}}
			if v.FileSystem.fill(p.Dir) == nil {
				out.Volumes[p.PodUID] = append(out.Volumes[p.PodUID], v)
			}
			continue
		}
		c := out.Containers[p.ContainerID]
		if c == nil {
			c = &Container{}
			out.Containers[p.ContainerID] = c
		}
		if p.Kind == Layer {
			c.Layer = use
		} else {
			c.Log = use
		}
	}
	maps.DeleteFunc(out.Containers, func(id string, _ *Container) bool { return unknown[id] })
	m.slow = slow
	return out
}

// tree walks a tree, for a while.
func (m *Meter) tree(ctx context.Context, dir string) (Use, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return m.walk(ctx, dir)
}

// order is that of places: slow ones come last.
func order(slow bool) int {
	if slow {
		return 1
	}
	return 0
}
