package server

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/procfs"

	"minik8s/internal/exposition"
	"minik8s/internal/kubelet/stats"
	"minik8s/internal/kubelet/stats/cadvisor"
	"minik8s/internal/kubelet/stats/scrape"
	"minik8s/internal/kubelet/stats/storage"
	"minik8s/internal/kubelet/stats/summary"
)

// rates is an Ask for present rates: the first one waits a second.
var rates = stats.Ask{Rates: time.Second}

// summary sends what the node and its pods use. With only_cpu_and_memory, as in Kubernetes, that is all of it.
func (s *Server) summary(w http.ResponseWriter, req *http.Request, pods Pods) error {
	s.storage.Reading() // it may be there when the rates are
	reading, err := s.stats.Read(req.Context(), rates)
	if err != nil {
		return err
	}
	out := summary.Of(s.cfg.NodeName, booted(), reading, s.storage.Reading(), pods.Pods())
	if req.URL.Query().Get("only_cpu_and_memory") == "true" {
		out = summary.Short(out)
	}
	send(w, http.StatusOK, out)
	return nil
}

// places are the directories of containers' and pods' files.
func (s *Server) places(ctx context.Context) ([]storage.Place, error) {
	files, err := s.cfg.Runtime.Files(ctx)
	if err != nil {
		return nil, err
	}
	var out []storage.Place
	for _, f := range files {
		if f.Layer != "" {
			out = append(out, storage.Place{Kind: storage.Layer, PodUID: f.PodUID, ContainerID: f.ContainerID, Dir: f.Layer})
		}
		if f.Log != "" {
			out = append(out, storage.Place{Kind: storage.Log, PodUID: f.PodUID, ContainerID: f.ContainerID, Dir: f.Log})
		}
	}
	if pods := s.cfg.Pods(); pods != nil {
		for _, p := range pods.Pods() {
			for name, dir := range pods.VolumeDirs(p) {
				out = append(out, storage.Place{Kind: storage.Volume, PodUID: string(p.UID), Name: name, Dir: dir})
			}
		}
	}
	// Last, since there are the most files. A containerd that is not ours keeps them elsewhere.
	if dir := filepath.Join(s.cfg.DataDir, "containerd"); exists(dir) {
		out = append(out, storage.Place{Kind: storage.Images, Dir: dir})
	}
	return out, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// booted is when the machine was started; zero if /proc does not say.
func booted() time.Time {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return time.Time{}
	}
	stat, err := proc.Stat()
	if err != nil {
		return time.Time{}
	}
	return time.Unix(int64(stat.BootTime), 0)
}

// cadvisor answers cAdvisor's REST API.
func (s *Server) cadvisor(w http.ResponseWriter, req *http.Request, pods Pods) error {
	h := cadvisor.Handler{Stats: s.stats, Storage: s.storage.Reading, Pods: pods.Pods, Events: s.events, WriteTimeout: s.cfg.WriteTimeout, Version: s.cfg.Version}
	h.ServeHTTP(w, req)
	return nil
}

// containerMetrics is /metrics/cadvisor, and resourceMetrics /metrics/resource: counters, for which no question waits.
func (s *Server) containerMetrics(w http.ResponseWriter, req *http.Request, pods Pods) error {
	reading, err := s.stats.Read(req.Context(), stats.Ask{})
	if err != nil {
		return err
	}
	return page(w, func(t *exposition.Text) error {
		scrape.Containers(t, reading, s.storage.Reading(), pods.Pods(), s.cfg.Version)
		return nil
	})
}

func (s *Server) resourceMetrics(w http.ResponseWriter, req *http.Request, pods Pods) error {
	reading, err := s.stats.Read(req.Context(), stats.Ask{})
	if err != nil {
		return err
	}
	return page(w, func(t *exposition.Text) error {
		scrape.Resources(t, reading, pods.Pods())
		return nil
	})
}

// machineMetrics is /metrics/node.
func (s *Server) machineMetrics(w http.ResponseWriter, _ *http.Request, _ Pods) error {
	return page(w, scrape.Machine)
}

// page sends a page as it grows. An error of write is before its first sample.
func page(w http.ResponseWriter, write func(*exposition.Text) error) error {
	w.Header().Set("Content-Type", exposition.ContentType)
	t := exposition.To(w)
	if err := write(t); err != nil {
		w.Header().Del("Content-Type")
		return err
	}
	return ignore(t.Flush())
}

// metrics is /metrics: the daemon's own.
func (s *Server) metrics(w http.ResponseWriter, req *http.Request, _ Pods) error {
	promhttp.HandlerFor(s.cfg.Metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, req)
	return nil
}
