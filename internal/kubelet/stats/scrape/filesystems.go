package scrape

import (
	"time"

	"minik8s/internal/exposition"
	"minik8s/internal/kubelet/stats/storage"
)

// fileSystems writes what is used of the machine's file systems, and what containers take: their layer and their log, as in
// cAdvisor. The time is that of the other samples: Prometheus takes what is some minutes old for gone.
func fileSystems(t *exposition.Text, rows []row, disk *storage.Reading) {
	type part struct {
		labels string
		use    uint64
		of     *storage.FileSystem
		time   time.Time
	}
	if disk == nil {
		return
	}
	var parts []part
	for i := range rows {
		r := &rows[i]
		switch {
		case r.further:
		case r.PodUID == "":
			devices := map[string]bool{} // a device that is mounted twice is one
			for j := range disk.Mounted {
				if f := &disk.Mounted[j]; !devices[f.Device] && !f.InMemory {
					devices[f.Device] = true
					parts = append(parts, part{exposition.Labels("device", f.Device) + "," + r.labels[plain], f.Used(), f, r.Last().Time})
				}
			}
		case disk.Containers[r.ContainerID] != nil:
			used := disk.Containers[r.ContainerID]
			parts = append(parts, part{exposition.Labels("device", disk.Data.Device) + "," + r.labels[plain], used.Layer.Bytes + used.Log.Bytes, &disk.Data, r.Last().Time})
		}
	}
	for _, f := range []struct {
		name, help string
		value      func(*part) uint64
	}{
		{"container_fs_inodes_free", "Number of available Inodes", func(p *part) uint64 { return p.of.InodesFree }},
		{"container_fs_inodes_total", "Number of Inodes", func(p *part) uint64 { return p.of.Inodes }},
		{"container_fs_limit_bytes", "Number of bytes that can be consumed by the container on this filesystem.", func(p *part) uint64 { return p.of.Capacity }},
		{"container_fs_usage_bytes", "Number of bytes that are consumed by the container on this filesystem.", func(p *part) uint64 { return p.use }},
	} {
		t.Maybe(f.name, exposition.Gauge, f.help)
		for i := range parts {
			t.Sample(parts[i].labels, float64(f.value(&parts[i])), parts[i].time)
		}
	}
}
