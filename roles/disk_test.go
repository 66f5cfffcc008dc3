package roles_test

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	v1 "github.com/google/cadvisor/info/v1"
	corev1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"minik8s/internal/client/remote"
)

// What a container writes to its root, its log and its volumes is seen by all who ask the kubelet.
func TestDiskUse(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	writer := shell("writer", "head -c 5242880 /dev/zero > /big; head -c 3145728 /dev/zero > /data/file; head -c 1048576 /dev/zero > /memory/file; "+
		"for i in $(seq 2000); do echo a line of the log, number $i; done; sync; touch /done; "+forever)
	for name, medium := range map[string]corev1.StorageMedium{"data": "", "memory": corev1.StorageMediumMemory} {
		writer.Spec.Volumes = append(writer.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}})
		writer.Spec.Containers[0].VolumeMounts = append(writer.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	p.create(c, writer)
	p.running(c, "writer")
	p.eventually("written", func() bool {
		_, err := p.command("ctl", "exec", "writer", "--", "test", "-e", "/done")
		return err == nil
	})
	api, err := remote.New(remote.Config{Socket: filepath.Join(p.dir, "api.sock")})
	if err != nil {
		t.Fatal(err)
	}
	node := "/api/v1/nodes/" + p.pod(c, "writer").Spec.NodeName + "/proxy"
	get := func(path string) []byte {
		t.Helper()
		resp, err := api.Do(t.Context(), http.MethodGet, node+path, nil, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // it was only read
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var pod statsapi.PodStats
	var summary statsapi.Summary
	p.eventually("measured", func() bool {
		summary = statsapi.Summary{}
		if err := json.Unmarshal(get("/stats/summary"), &summary); err != nil {
			t.Fatal(err)
		}
		for _, pod = range summary.Pods {
			if pod.PodRef.Name == "writer" && pod.EphemeralStorage != nil {
				return true // and images are measured in the same go
			}
		}
		return false
	})
	about := func(what string, f *statsapi.FsStats, from, to uint64) {
		t.Helper()
		if f == nil || f.UsedBytes == nil || *f.UsedBytes < from || *f.UsedBytes > to || *f.CapacityBytes < to || *f.InodesUsed == 0 {
			text, _ := json.Marshal(f) //nolint:errcheck // for people
			t.Errorf("%s: %s, want %d to %d", what, text, from, to)
		}
	}
	const mib = 1 << 20
	about("the root", pod.Containers[0].Rootfs, 5*mib, 6*mib)
	about("the log", pod.Containers[0].Logs, 50<<10, mib)
	for _, v := range pod.VolumeStats {
		switch v.Name {
		case "data":
			about("the volume", &v.FsStats, 3*mib, 4*mib)
		case "memory":
			about("the volume in memory", &v.FsStats, mib, 2*mib)
		}
	}
	if len(pod.VolumeStats) != 3 { // and the account's token
		t.Errorf("%d volumes", len(pod.VolumeStats))
	}
	about("the pod", pod.EphemeralStorage, 8*mib, 10*mib)
	if fs := summary.Node.Fs; fs == nil || *fs.CapacityBytes == 0 || *fs.UsedBytes+*fs.AvailableBytes > *fs.CapacityBytes || summary.Node.Runtime == nil {
		t.Errorf("the node: %+v", fs)
	}
	about("images", summary.Node.Runtime.ImageFs, 6*mib, 1<<30) // what the pod wrote above its image, too
	found := regexp.MustCompile(`container_fs_usage_bytes{device="[^"]+",container="c",[^}]*pod="writer"} ([0-9.e+]+) `).FindSubmatch(get("/metrics/cadvisor"))
	if found == nil {
		t.Fatal("not for Prometheus")
	}
	if used, err := strconv.ParseFloat(string(found[1]), 64); err != nil || used < 5*mib || used > 7*mib {
		t.Errorf("for Prometheus: %s", found[1])
	}
	if !regexp.MustCompile(`container_fs_limit_bytes{device="[^"]+",container="",id="/",`).Match(get("/metrics/cadvisor")) {
		t.Error("the machine's own are not for Prometheus")
	}
	var containers map[string]v1.ContainerInfo
	if err := json.Unmarshal(get("/api/v1.3/docker"), &containers); err != nil || len(containers) != 1 {
		t.Fatalf("%v, %v", containers, err)
	}
	for _, x := range containers {
		fs := x.Stats[len(x.Stats)-1].Filesystem
		if !x.Spec.HasFilesystem || len(fs) != 1 || fs[0].BaseUsage < 5*mib || fs[0].Usage <= fs[0].BaseUsage || fs[0].Usage > 7*mib {
			t.Errorf("by cAdvisor's API: %+v", fs)
		}
	}
}
