package cadvisor

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/cadvisor/info/v1"
	v2 "github.com/google/cadvisor/info/v2"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/stats"
	"minik8s/internal/kubelet/stats/events"
	"minik8s/internal/kubelet/stats/storage"
)

// Paths begin with one of these.
const (
	V1 = "/api/v1.3/"
	V2 = "/api/v2.1/"
)

// Reader reads samples: see stats.Sampler.
type Reader interface {
	Read(ctx context.Context, ask stats.Ask) (*stats.Reading, error)
}

// Handler answers.
type Handler struct {
	Stats Reader
	// Storage returns what was measured last of files; nil: nothing yet.
	Storage func() *storage.Reading
	// Pods returns the pods of this node, which give containers their labels.
	Pods func() []*corev1.Pod
	// Events says what happened to containers; nil: nothing is known of that.
	Events *events.Log
	// WriteTimeout is how long a client may take to read an event.
	WriteTimeout time.Duration
	// Version is what answers call the version of cAdvisor.
	Version string
}

// maxRequest bounds the body of a request of v1.3, which is a few numbers.
const maxRequest = 64 << 10

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	verb, name, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, V1), "/")
	if verb == "events" && h.Events != nil {
		h.events(w, req, "/"+name)
		return
	}
	answer, err := h.answer(req)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case answer == nil:
		http.Error(w, "no container or request "+strconv.Quote(req.URL.Path), http.StatusNotFound)
	default:
		text, err := json.Marshal(answer)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(text) //nolint:errcheck // the client has disconnected
	}
}

// answer is nil for what is not known.
func (h *Handler) answer(req *http.Request) (any, error) {
	if rest, ok := strings.CutPrefix(req.URL.Path, V1); ok {
		verb, name, _ := strings.Cut(rest, "/")
		return h.v1(req, verb, "/"+name)
	}
	rest, _ := strings.CutPrefix(req.URL.Path, V2)
	verb, name, _ := strings.Cut(rest, "/")
	return h.v2(req, verb, "/"+name)
}

func (h *Handler) v1(req *http.Request, verb, name string) (any, error) {
	if verb == "machine" {
		return machineInfo()
	}
	ask := v1.DefaultContainerInfoRequest()
	if req.Body != nil {
		err := json.NewDecoder(io.LimitReader(req.Body, maxRequest)).Decode(&ask)
		if err != nil && err != io.EOF {
			return nil, err
		}
	}
	samples := ask.NumStats
	if samples < 0 {
		samples = 1 << 30
	}
	list, err := h.read(req.Context(), stats.Ask{Samples: samples})
	if err != nil {
		return nil, err
	}
	info := func(c *container) v1.ContainerInfo {
		out := v1.ContainerInfo{ContainerReference: v1.ContainerReference{Id: c.ContainerID, Name: c.Cgroup, Aliases: c.aliases(), Namespace: namespace},
			Spec: c.spec1()}
		for i := range c.Samples {
			s := &c.Samples[i]
			if s.Time.Before(ask.Start) || !ask.End.IsZero() && s.Time.After(ask.End) {
				continue
			}
			out.Stats = append(out.Stats, c.stats1(i))
		}
		return out
	}
	name = path.Clean(name)
	switch verb {
	case "containers":
		var out *v1.ContainerInfo
		var below []v1.ContainerReference
		for _, c := range list {
			if c.Cgroup == name {
				one := info(c)
				out = &one
			} else if within(c.Cgroup, name) {
				below = append(below, v1.ContainerReference{Id: c.ContainerID, Name: c.Cgroup, Aliases: c.aliases(), Namespace: namespace})
			}
		}
		if out == nil {
			return nil, nil
		}
		out.Subcontainers = below
		return out, nil
	case "subcontainers":
		out := []v1.ContainerInfo{}
		for _, c := range list {
			if within(c.Cgroup, name) {
				out = append(out, info(c))
			}
		}
		return some(out), nil
	case "docker":
		out := map[string]v1.ContainerInfo{}
		for _, c := range list {
			if c.ContainerID != "" && (name == "/" || c.is(name)) {
				out[c.Cgroup] = info(c)
			}
		}
		if name != "/" && len(out) == 0 {
			return nil, nil
		}
		return out, nil
	}
	return nil, nil
}

// some is nil, of no type, for an empty list.
func some[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

func (h *Handler) v2(req *http.Request, verb, name string) (any, error) {
	switch verb {
	case "version":
		return h.Version, nil
	case "machine":
		return machineInfo()
	case "attributes":
		return attributes(h.Version)
	case "machinestats":
		list, err := h.read(req.Context(), asked(req.URL.Query()))
		if err != nil {
			return nil, err
		}
		return machineStats(list[0]), nil
	case "stats":
		return h.stats2(req, path.Clean(name))
	}
	return nil, nil
}

// asked is what a question of v2.1 asks for. The defaults are cAdvisor's.
func asked(query url.Values) stats.Ask {
	ask := stats.Ask{Samples: 64}
	if n, err := strconv.Atoi(query.Get("count")); err == nil {
		ask.Samples = n
	}
	if ask.Samples < 0 {
		ask.Samples = 1 << 30
	}
	if ask.Samples > 1 {
		ask.Rates = 1
	}
	if age, err := time.ParseDuration(query.Get("max_age")); err == nil {
		ask.MaxAge = age
	}
	return ask
}

// stats2 answers for one container or, with recursive, all below it.
func (h *Handler) stats2(req *http.Request, name string) (any, error) {
	query := req.URL.Query()
	ask := asked(query)
	recursive := query.Get("recursive") == "true"
	list, err := h.read(req.Context(), ask)
	if err != nil {
		return nil, err
	}
	out := map[string]v2.ContainerInfo{}
	for _, c := range list {
		wanted := c.Cgroup == name || recursive && within(c.Cgroup, name)
		if query.Get("type") != v2.TypeName && query.Get("type") != "" {
			wanted = c.ContainerID != "" && (c.is(name) || recursive && name == "/")
		}
		if wanted {
			out[c.Cgroup] = v2.ContainerInfo{Spec: c.spec2(), Stats: c.stats2(ask.Samples)}
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// within reports whether a cgroup is another one or below it.
func within(cgroup, of string) bool {
	return of == "/" || cgroup == of || strings.HasPrefix(cgroup, of+"/")
}

// read returns the machine first, then pods and containers.
func (h *Handler) read(ctx context.Context, ask stats.Ask) ([]*container, error) {
	r, err := h.Stats.Read(ctx, ask)
	if err != nil {
		return nil, err
	}
	pods := map[string]*corev1.Pod{}
	for _, p := range h.Pods() {
		pods[string(p.UID)] = p
	}
	disk := h.Storage()
	out := []*container{{Series: &r.Node}}
	if disk != nil {
		out[0].mounted = disk.Mounted
	}
	for _, list := range [][]stats.Series{r.Pods, r.Containers} {
		for i := range list {
			c := &container{Series: &list[i], pod: pods[list[i].PodUID]}
			if disk != nil && disk.Containers[c.ContainerID] != nil {
				c.used, c.data = disk.Containers[c.ContainerID], &disk.Data
			}
			out = append(out, c)
		}
	}
	return out, nil
}
