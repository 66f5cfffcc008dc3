package storage

import (
	"context"
	"sync"
	"time"
)

const (
	// interval is the least time between two measurings, and share how many times as long as a measuring takes is the time
	// to the next.
	interval = time.Minute
	share    = 100
	// stale is how old what was measured may be.
	stale = 10 * time.Minute
	// longest bounds a measuring.
	longest = 5 * time.Minute
)

// Kind says what files are for.
type Kind int

// The kinds of places.
const (
	Layer  Kind = iota // what a container has written to its root
	Log                // what a container has said
	Volume             // of a pod
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
	// Containers are the layer and the log of each container, by its id. Volumes are those of each pod, by its UID.
	Containers map[string]*Container
	Volumes    map[string][]Measured
}

// Container is what a container takes on disk.
type Container struct{ Layer, Log Use }

// Meter measures places. Its methods are safe for concurrent use.
type Meter struct {
	data   string
	places func(context.Context) ([]Place, error)
	now    func() time.Time

	mu   sync.Mutex
	busy bool
	last *Reading
	cost time.Duration
}

// New returns a meter of the places there are at each measuring; data is the daemon's data directory.
func New(data string, places func(context.Context) ([]Place, error)) *Meter {
	return &Meter{data: data, places: places, now: time.Now}
}

// Reading returns what was measured last, which must not be changed; nil: nothing (of late). It has the meter measure again if it
// is time.
func (m *Meter) Reading() *Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if m.last != nil {
		if age := now.Sub(m.last.Time); age < 0 || age > stale+share*m.cost {
			m.last = nil
		}
	}
	if !m.busy && (m.last == nil || now.Sub(m.last.Time) >= max(interval, share*m.cost)) {
		m.busy = true
		go m.measure()
	}
	return m.last
}

func (m *Meter) measure() {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
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
	out := &Reading{Time: m.now(), Containers: map[string]*Container{}, Volumes: map[string][]Measured{}}
	if out.Data, err = Of(m.data); err != nil {
		return nil
	}
	out.Mounted = Mounted()
	for _, p := range places {
		use, err := Tree(ctx, p.Dir)
		if err != nil && !gone(err) {
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
	return out
}
