package roles_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/machine"
)

// Stock kubectl makes an autoscaler, replicas follow the load up and down, and whoever watches with kubectl or ctl sees value,
// target and replicas move; the seed system's tables have what pods use.
func TestKubectlAutoscale(t *testing.T) {
	needRoot(t)
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	daemon, err := built()
	if err != nil {
		t.Fatal(err)
	}
	p := newProcess(t, "--metrics-window=2s")
	c := p.up()
	k := func(args ...string) []string {
		return append([]string{"--kubeconfig", filepath.Join(p.dir, "admin.kubeconfig")}, args...)
	}
	ctl := func(args ...string) []string { return append([]string{"ctl", "--data-dir", p.dir}, args...) }
	run := func(name string, args []string) string {
		t.Helper()
		out, err := says(t, name, args...)
		if err != nil {
			t.Fatal(args, err, out)
		}
		return out
	}
	// Each replica has a load as long as it has a file.
	web := template("web", `while :; do if [ -e /busy ]; then :; else sleep 0.5; fi; done`)
	web.Spec.TerminationGracePeriodSeconds = new(int64(1)) // a shell does not end by itself
	web.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
		Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}}
	p.make(c, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: selector("web"), Template: web}})
	ready := func(n int32) {
		t.Helper()
		began := time.Now()
		p.eventually("there are so many replicas", func() bool {
			d, err := client.Get[*appsv1.Deployment](t.Context(), c, client.Key{Kind: api.Deployments, Namespace: "default", Name: "web"})
			return err == nil && *d.Spec.Replicas == n && d.Status.ReadyReplicas == n && d.Status.Replicas == n
		})
		t.Logf("%d replicas are ready after %v", n, time.Since(began))
	}
	ready(1)

	if out := run(kubectl, k("autoscale", "deployment", "web", "--min=1", "--max=3", "--cpu-percent=50")); !strings.Contains(out, "horizontalpodautoscaler.autoscaling/web autoscaled") {
		t.Error(out)
	}
	// Upstream's pace would make this a matter of minutes.
	run(kubectl, k("annotate", "hpa", "web", api.SyncPeriodAnnotation+"=1s"))
	run(kubectl, k("patch", "hpa", "web", "--type=merge", "-p", `{"spec":{"behavior":{"scaleDown":{"stabilizationWindowSeconds":0}}}}`))
	seen := map[string]*output{"kubectl get hpa -w": watching(t, kubectl, k("get", "hpa", "-w")...), "ctl get hpa -w": watching(t, daemon, ctl("get", "hpa", "-w")...)}
	// sees waits until each of those who watch was shown a line.
	sees := func(want string) {
		t.Helper()
		line := regexp.MustCompile(`(?m)^` + want)
		for who, out := range seen {
			defer func() {
				if t.Failed() {
					t.Logf("%s:\n%s", who, out)
				}
			}()
			p.eventually(who+" shows "+want, func() bool { return line.MatchString(out.String()) })
		}
	}
	sees(`NAME +REFERENCE +TARGETS +MINPODS +MAXPODS +REPLICAS +AGE`)
	p.eventually("ctl get hpa -w shows how many are wanted", func() bool {
		return regexp.MustCompile(`(?m)^NAME .* REPLICAS .* DESIRED`).MatchString(seen["ctl get hpa -w"].String())
	})
	sees(`web +Deployment/web +cpu: [0-9]{1,2}%/50% +1 +3 +1 `)
	first := pods(c, "web")[0].Name
	run(kubectl, k("exec", first, "--", "touch", "/busy"))
	ready(3)
	sees(`web +Deployment/web +cpu: [0-9]{2,3}%/50% +1 +3 +3 `)

	for args, want := range map[string]string{
		"get pods -o x":  `default/` + first + ` .* [1-9][0-9.]*% +[0-9.]+Mi `,
		"get rs -o x":    `default/web-\S+ .* [1-9][0-9.]*% +[0-9.]+Mi`,
		"get nodes -o x": ` [1-9][0-9.]*% +[1-9][0-9.]*Mi `,
	} {
		out := ""
		p.eventually("ctl "+args+" says "+want, func() bool {
			out, _ = says(t, daemon, ctl(strings.Fields(args)...)...) //nolint:errcheck // it says so
			return regexp.MustCompile(want).MatchString(out)
		})
		t.Logf("ctl %s:\n%s", args, out)
	}

	for _, pod := range pods(c, "web") {
		run(kubectl, k("exec", pod.Name, "--", "rm", "-f", "/busy"))
	}
	ready(1)
	sees(`web +Deployment/web +cpu: [0-9]{1,2}%/50% +1 +3 +[23] `)
	for who, out := range seen {
		t.Logf("%s:\n%s", who, out)
	}
	p.stop()
}

// watching starts a program that goes on until the test ends, and returns what it says.
func watching(t *testing.T, name string, args ...string) *output {
	t.Helper()
	out := &output{}
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := machine.StartChild(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // it was killed
	})
	return out
}
