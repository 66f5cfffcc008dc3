package roles_test

import (
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"minik8s/internal/client/remote"
)

// What pods and nodes use is seen as users see it: by ctl, by stock kubectl where there is one, at once, and by who may.
func TestUsage(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	busy := shell("busy", "while :; do :; done")
	busy.Labels = map[string]string{"app": "busy"}
	busy.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}
	p.create(c, busy)
	p.create(c, shell("idle", forever))
	again := shell("again", "if [ -e /kept/begun ]; then "+forever+"; fi; touch /kept/begun")
	again.Spec.Volumes = []corev1.Volume{{Name: "kept", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	again.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "kept", MountPath: "/kept"}}
	p.create(c, again)
	p.running(c, "busy")
	p.running(c, "idle")
	api, err := remote.New(remote.Config{Socket: filepath.Join(p.dir, "api.sock")})
	if err != nil {
		t.Fatal(err)
	}
	// raw is what "kubectl get --raw" prints, and so without kubectl.
	raw := func(path string) string {
		at, query, _ := strings.Cut(path, "?")
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := api.Do(t.Context(), http.MethodGet, at, values, "", nil)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()          //nolint:errcheck // it was only read
		text, _ := io.ReadAll(resp.Body) //nolint:errcheck // what is missing is noticed
		return string(text)
	}
	kubectl := func(args ...string) string {
		if path := args[len(args)-1]; args[0] == "get" && args[1] == "--raw" {
			return raw(path)
		}
		out, _ := says(t, "kubectl", append([]string{"--kubeconfig", filepath.Join(p.dir, "admin.kubeconfig")}, args...)...) //nolint:errcheck // it says so
		return out
	}
	_, missing := exec.LookPath("kubectl")
	node := p.pod(c, "busy").Spec.NodeName
	for _, x := range []struct{ args, want string }{
		{"top pod -l app=busy --no-headers", `^busy +([1-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9])m +[0-9]+Mi\s*$`}, // no more than its limit
		{"top pod --containers -A", `(?s)default +busy +c +[0-9]+m.*default +idle +c +[0-9]m +`},
		{"top node --no-headers", `^` + node + ` +[1-9][0-9]*m +[0-9]+% +[1-9][0-9]*Mi +[0-9]+%`},
		{"get podmetrics", `(?s)^NAME +CPU +MEMORY +WINDOW.*busy .*idle `},
		{"get --raw /apis/metrics.k8s.io/v1beta1/namespaces/default/pods?fieldSelector=metadata.name%3Didle", `"name":"idle".*"containers":\[{"name":"c","usage":{"cpu":`},
		{"get podmetrics nobody", `podmetrics?.*"nobody" not found|pods.metrics.k8s.io "nobody" not found`},
		{"top pod --as=system:serviceaccount:other:default", `Forbidden.*cannot list resource "pods" in API group "metrics.k8s.io"`},
		{"top node --as=system:node:other --as-group=system:nodes", `Forbidden`},
		{"delete podmetrics busy", `MethodNotAllowed|not allow this method`},
		{"get --raw /api/v1/nodes/" + node + "/proxy/metrics/cadvisor", `container_cpu_usage_seconds_total{cpu="total",container="c",id="[^"]*",image="[^"]*",name="[0-9a-f]{64}",namespace="default",pod="busy"} `},
		{"get --raw /api/v1/nodes/" + node + "/proxy/metrics/cadvisor", `container_network_receive_bytes_total{interface="eth0",container="",id="[^"]*",image="pause",name="k8s_POD_busy_default_[^"]*",namespace="default",pod="busy"} `},
		{"get --raw /api/v1/nodes/" + node + "/proxy/metrics/cadvisor", `container_network_transmit_bytes_total{interface="eth0",container="",id="/",image="",name="",namespace="",pod=""} [0-9]`},
		{"get --raw /api/v1/nodes/" + node + "/proxy/metrics/resource", `pod_cpu_usage_seconds_total{namespace="default",pod="busy"} [0-9]`},
		{"get --raw /api/v1/nodes/" + node + "/proxy/metrics/node", `node_cpu_seconds_total{cpu="0",mode="user"} [0-9]`},
		{"get --raw /api/v1/nodes/" + node + "/proxy/stats/summary", `"usageNanoCores":[1-9]`},
		{"get --raw /api/v1/nodes/" + node + "/proxy/stats/summary", `"network":{"time":"[^"]*","name":"eth0","rxBytes":[0-9]+,[^}]*,"interfaces":\[{"name":"eth0",[^]]*\]}.*"pods":\[`},
		{"get --raw /api/v1/nodes/" + node + "/proxy/api/v1.3/machine", `"num_cores":[1-9]`},
	} {
		if missing != nil && !strings.HasPrefix(x.args, "get --raw") {
			continue
		}
		want := regexp.MustCompile(x.want)
		out := ""
		p.eventually("kubectl "+x.args+" says "+x.want, func() bool {
			out = kubectl(strings.Fields(x.args)...)
			return want.MatchString(out)
		})
		if t.Failed() {
			t.Fatal(out)
		}
	}
	daemon, err := built()
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"top nodes":       `^NAME +CPU\(cores\) +CPU\(%\) +MEMORY\(bytes\) +MEMORY\(%\)\n` + node + ` +[0-9]+m +[0-9]+% +[0-9]+Mi +[0-9]+%`,
		"top containers":  `busy +c +[1-9][0-9]*m +[0-9]+[KM]i +0\n`,
		"top pods again":  `(?m)^NAME +CPU\(cores\) +MEMORY\(bytes\) +RESTARTS\nagain +[0-9]+m +[0-9]+[KM]i +[1-9][0-9]*$`,
		"get pods -o x":   `default/busy .* [1-9][0-9.]*% +[0-9.]+Mi `,
		"get nodes -o x":  node + ` .* [1-9][0-9.]*% +[0-9.]+Mi `,
		"top pods nobody": `nothing is known of what pod "nobody" uses`,
	} {
		out := ""
		p.eventually("ctl "+args+" says "+want, func() bool {
			out, _ = says(t, daemon, append([]string{"ctl", "--data-dir", p.dir}, strings.Fields(args)...)...) //nolint:errcheck // it says so
			return regexp.MustCompile(want).MatchString(out)
		})
		if t.Failed() {
			t.Fatal(out)
		}
	}
}
