package logs

import (
	"path/filepath"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Hub watches the directories of the logs that are followed, all with one inotify instance, because their number per
// user is limited. It watches only while a log is followed. The zero Hub is ready to use.
type Hub struct {
	mu      sync.Mutex
	watcher *fsnotify.Watcher
	dirs    map[string]map[*follower]struct{}
}

// follower waits for changes of one log.
type follower struct {
	path    string
	changed chan struct{} // holds one
}

// watch sends on the channel when the log at path, or a part of it, has changed. stop must be called.
func (h *Hub) watch(path string) (changed <-chan struct{}, stop func(), err error) {
	dir := filepath.Dir(path)
	f := &follower{path: path, changed: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watcher == nil {
		w, err := fsnotify.NewWatcher()
		if err != nil {
			return nil, nil, err
		}
		h.watcher, h.dirs = w, map[string]map[*follower]struct{}{}
		go h.forward(w)
	}
	if h.dirs[dir] == nil {
		if err := h.watcher.Add(dir); err != nil {
			h.closeIfIdle()
			return nil, nil, err
		}
		h.dirs[dir] = map[*follower]struct{}{}
	}
	h.dirs[dir][f] = struct{}{}
	return f.changed, func() { h.leave(dir, f) }, nil
}

func (h *Hub) leave(dir string, f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.dirs[dir], f)
	if len(h.dirs[dir]) == 0 {
		delete(h.dirs, dir)
		_ = h.watcher.Remove(dir) // it is removed already if the directory is
		h.closeIfIdle()
	}
}

func (h *Hub) closeIfIdle() {
	if len(h.dirs) == 0 {
		h.watcher.Close()
		h.watcher = nil
	}
}

// forward ends when the watcher is closed.
func (h *Hub) forward(w *fsnotify.Watcher) {
	for {
		select {
		case ev, ok := <-w.Events:
			if !ok {
				return
			}
			h.notify(filepath.Dir(ev.Name), ev.Name)
		case _, ok := <-w.Errors:
			if !ok {
				return
			}
			h.notify("", "") // the queue overflowed: notify every follower
		}
	}
}

func (h *Hub) notify(dir, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for d, followers := range h.dirs {
		if dir != "" && d != dir {
			continue
		}
		for f := range followers {
			if name == "" || strings.HasPrefix(name, f.path) {
				select {
				case f.changed <- struct{}{}:
				default:
				}
			}
		}
	}
}
