package server

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// The types of /stats/summary, in the form of k8s.io/kubelet/pkg/apis/stats/v1alpha1, as far as it is filled here.
type (
	summary struct {
		Node nodeStats  `json:"node"`
		Pods []podStats `json:"pods"`
	}
	nodeStats struct {
		NodeName string `json:"nodeName"`
	}
	podStats struct {
		PodRef     podReference     `json:"podRef"`
		Containers []containerStats `json:"containers"`
	}
	podReference struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		UID       string `json:"uid"`
	}
	containerStats struct {
		Name   string      `json:"name"`
		CPU    cpuStats    `json:"cpu"`
		Memory memoryStats `json:"memory"`
	}
	cpuStats struct {
		Time                 time.Time `json:"time"`
		UsageCoreNanoSeconds uint64    `json:"usageCoreNanoSeconds"`
	}
	memoryStats struct {
		Time            time.Time `json:"time"`
		WorkingSetBytes uint64    `json:"workingSetBytes"`
	}
)

// summary sends what the containers of this node's pods use.
func (s *Server) summary(w http.ResponseWriter, req *http.Request, pods Pods) error {
	stats, err := s.cfg.Runtime.Stats(req.Context())
	if err != nil {
		return err
	}
	of := map[string][]containerStats{}
	for _, x := range stats {
		of[x.PodUID] = append(of[x.PodUID], containerStats{Name: x.Container,
			CPU: cpuStats{x.Time, x.CPUNanos}, Memory: memoryStats{x.Time, x.MemoryBytes}})
	}
	out := summary{Node: nodeStats{s.cfg.NodeName}, Pods: []podStats{}}
	for _, p := range pods.Pods() {
		if containers := of[string(p.UID)]; containers != nil {
			slices.SortFunc(containers, func(a, b containerStats) int { return strings.Compare(a.Name, b.Name) })
			out.Pods = append(out.Pods, podStats{podReference{p.Name, p.Namespace, string(p.UID)}, containers})
		}
	}
	send(w, http.StatusOK, out)
	return nil
}
