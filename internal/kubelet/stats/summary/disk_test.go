package summary

import (
	"testing"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"minik8s/internal/kubelet/stats/storage"
)

// What a pod takes is said when all of it is known, and only then.
func TestEphemeral(t *testing.T) {
	on := storage.FileSystem{Capacity: 1000}
	disk := &storage.Reading{Data: on, Partly: map[string]bool{"partly": true}, Volumes: map[string][]storage.Measured{
		"u": {{Use: storage.Use{Bytes: 7, Inodes: 1}}, {Use: storage.Use{Bytes: 100, Inodes: 1}, FileSystem: storage.FileSystem{InMemory: true}}}}}
	known := statsapi.ContainerStats{Rootfs: use(&on, storage.Use{Bytes: 5, Inodes: 2}), Logs: use(&on, storage.Use{Bytes: 3, Inodes: 1})}
	if got := ephemeral(disk, "u", []statsapi.ContainerStats{known, known}); got == nil || *got.UsedBytes != 23 || *got.InodesUsed != 7 || *got.CapacityBytes != 1000 {
		t.Errorf("%+v", got)
	}
	if got := ephemeral(disk, "u", []statsapi.ContainerStats{known, {}}); got != nil {
		t.Errorf("a container is not known yet: %+v", got)
	}
	if got := ephemeral(disk, "partly", []statsapi.ContainerStats{known}); got != nil {
		t.Errorf("a volume is not known: %+v", got)
	}
}
