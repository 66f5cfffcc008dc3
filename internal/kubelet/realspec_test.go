package kubelet

import (
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan/plantest"
)

// TestRealVolumesFollowTheirObjects: a container reads the new content of a mounted ConfigMap, all of it
// at once, and a secret that only its group may read.
func TestRealVolumesFollowTheirObjects(t *testing.T) {
	b := newRealBed(t)
	b.put(theMap("m", "a", "old\n", "b", "old"))
	b.put(&corev1.Secret{ObjectMeta: theMap("s").ObjectMeta, Data: map[string][]byte{"k": []byte("hidden")}})
	b.create(shell("web", "cat /s/k; echo; id -G; touch /v/x 2>&1; cat /sub; echo ready; while read x < /v/a && [ $x = old ]; do :; done; "+
		"cat /v/a /v/b /sub; "+forever, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{mapVolume("m"), {Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", DefaultMode: new(int32(0o400))}}}}
		c := &p.Spec.Containers[0]
		c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}, {Name: "s", MountPath: "/s"}, {Name: "v", MountPath: "/sub", SubPath: "a"}}
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(1000)), RunAsGroup: new(int64(1000)), FSGroup: new(int64(2000))}
	}))
	b.api.await(t, "web", "running", running)
	want := "hidden\n1000 2000\ntouch: /v/x: Read-only file system\nold\nready\n"
	eventually(t, "it has read", func() error { return saw(b.logs("web", "main", &corev1.PodLogOptions{}), want) })
	b.put(theMap("m", "a", "new\n", "b", "new"))
	eventually(t, "it has seen the change", func() error {
		return saw(strings.TrimPrefix(b.logs("web", "main", &corev1.PodLogOptions{}), want), "new\nnewold\n")
	})
	b.remove("web")
	b.nothingLeft()
}

type unexpected string

func (u unexpected) Error() string { return string(u) }

func saw(got, want string) error {
	if got != want {
		return unexpected(got)
	}
	return nil
}

// TestRealInitContainersAndSidecars: each in its turn, the sidecar beside the job and gone after it.
func TestRealInitContainersAndSidecars(t *testing.T) {
	b := newRealBed(t)
	b.create(shell("job", "cat /d/log; echo main >> /d/log; cat /d/log > /dev/termination-log", plantest.RestartPolicy(corev1.RestartPolicyNever), func(p *corev1.Pod) {
		always := corev1.ContainerRestartPolicyAlways
		side := shellContainer("side", "echo side >> /d/log; trap 'cat /d/log; exit 0' TERM; touch /d/up; while :; do sleep 1000 & wait; done")
		side.RestartPolicy = &always
		p.Spec.InitContainers = []corev1.Container{shellContainer("one", "echo one >> /d/log"), side,
			shellContainer("two", "while ! [ -e /d/up ]; do sleep 0.01; done; echo two >> /d/log")}
		p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		for _, c := range podspec.Containers(p) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "d", MountPath: "/d"}}
		}
	}))
	p := b.api.await(t, "job", "succeeded", hasPhase(corev1.PodSucceeded))
	if end := p.Status.ContainerStatuses[0].State.Terminated; end == nil || end.Message != "one\nside\ntwo\nmain\n" {
		t.Errorf("%s", statusText(p))
	}
	if err := saw(b.logs("job", "side", &corev1.PodLogOptions{}), "one\nside\ntwo\nmain\n"); err != nil {
		t.Errorf("the sidecar was not there to the end: %v", err)
	}
	b.remove("job")
	b.nothingLeft()
}

// TestRealProbes: by http to a server in the pod, by a command that a file in the container decides.
func TestRealProbes(t *testing.T) {
	needOwnRoot(t)
	b := newRealBed(t)
	b.create(shell("web", "mkdir /www; echo hi > /www/up; touch /live; httpd -p 8080 -h /www; "+forever, func(p *corev1.Pod) {
		c := &p.Spec.Containers[0]
		c.Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}
		c.LivenessProbe, c.ReadinessProbe = plantest.ExecProbe(""), plantest.ExecProbe("")
		c.LivenessProbe.Exec.Command = []string{"cat", "/live"}
		c.LivenessProbe.InitialDelaySeconds = 1
		c.ReadinessProbe.ProbeHandler = corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/up", Port: intstr.FromString("web")}}
	}))
	p := b.api.await(t, "web", "ready", isReady)
	exec := func(args ...string) {
		t.Helper()
		id := strings.TrimPrefix(p.Status.ContainerStatuses[0].ContainerID, cri.ContainerIDPrefix)
		if code, err := b.real.Exec(t.Context(), id, cri.ExecConfig{Command: args}); err != nil || code != 0 {
			t.Fatal(code, err)
		}
	}
	exec("mv", "/www/up", "/www/down")
	p = b.api.await(t, "web", "not ready", func(p *corev1.Pod) bool { return !isReady(p) })
	// The server may have been probed before it listened, which is an event of the same reason.
	b.api.awaitSaying(t, "web", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 404")
	exec("mv", "/www/down", "/www/up")
	p = b.api.await(t, "web", "ready again", isReady)
	exec("rm", "/live")
	p = b.api.await(t, "web", "restarted and ready", func(p *corev1.Pod) bool {
		return p.Status.ContainerStatuses[0].RestartCount == 1 && isReady(p)
	})
	b.remove("web")
	b.nothingLeft()
}

// TestRealNames: what a pod is called, whom it knows, and a directory that is named after it.
func TestRealNames(t *testing.T) {
	needOwnRoot(t)
	b := newRealBed(t)
	b.create(shell("named", "hostname; grep named /etc/hosts | tr '\\t' ' ' | cut -d ' ' -f 2-; grep db /etc/hosts | tr '\\t' ' '; cat /etc/resolv.conf; ls -d /all/*",
		plantest.RestartPolicy(corev1.RestartPolicyNever), func(p *corev1.Pod) {
			p.Spec.Subdomain, p.Spec.SetHostnameAsFQDN = "sub", new(true)
			p.Spec.HostAliases = []corev1.HostAlias{{IP: "192.0.2.7", Hostnames: []string{"db", "db.example"}}}
			p.Spec.DNSPolicy, p.Spec.DNSConfig = corev1.DNSNone, &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.53"},
				Searches: []string{"example"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}}}
			p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			c := &p.Spec.Containers[0]
			c.Env = []corev1.EnvVar{{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
			c.VolumeMounts = []corev1.VolumeMount{{Name: "d", MountPath: "/own", SubPathExpr: "of-$(POD)"}, {Name: "d", MountPath: "/all"}}
		}))
	b.api.await(t, "named", "ended", func(p *corev1.Pod) bool { return p != nil && podspec.Finished(p.Status.Phase) })
	want := "named.sub.default.svc.cluster.local\nnamed.sub.default.svc.cluster.local named\n192.0.2.7 db db.example\n" +
		"search example\nnameserver 192.0.2.53\noptions ndots:2\n/all/of-named\n"
	if err := saw(b.logs("named", "", &corev1.PodLogOptions{}), want); err != nil {
		t.Error(err)
	}
	b.remove("named")
	b.nothingLeft()
}

// TestRealHooks: what the hooks do is there when it should be.
func TestRealHooks(t *testing.T) {
	needOwnRoot(t)
	b := newRealBed(t)
	b.create(shell("web", "trap 'cat /said; exit 0' USR1; while :; do sleep 1000 & wait; done", func(p *corev1.Pod) {
		usr1 := corev1.SIGUSR1
		p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{StopSignal: &usr1,
			PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "echo hello > /said"}}},
			PreStop:   &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "sleep 0.2; echo goodbye >> /said"}}}}
	}))
	p := b.api.await(t, "web", "ready, which it is after its postStart", isReady)
	reading, err := b.k.Logs(t.Context(), "default", "web", "", &corev1.PodLogOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	if st := p.Status.ContainerStatuses[0]; st.RestartCount != 0 || st.StopSignal == nil {
		t.Errorf("%s", statusText(p))
	}
	b.delete("web")
	said, err := io.ReadAll(reading)
	if err != nil || string(said) != "hello\ngoodbye\n" {
		t.Errorf("%q, %v", said, err)
	}
	b.api.await(t, "web", "gone", goneNow)
	b.nothingLeft()
}

// TestRealSecurity: who the process is and what it may do, and a refusal that says why.
func TestRealSecurity(t *testing.T) {
	b := newRealBed(t)
	strict := corev1.SupplementalGroupsPolicyStrict
	b.create(shell("safe", "id -u; id -g; id -G; touch /x 2>&1; touch /d/x && echo writable; grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status",
		plantest.RestartPolicy(corev1.RestartPolicyNever), func(p *corev1.Pod) {
			c := &p.Spec.Containers[0]
			c.SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
			p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(1000)), RunAsGroup: new(int64(1001)),
				FSGroup: new(int64(2000)), SupplementalGroups: []int64{3000}, SupplementalGroupsPolicy: &strict}
			p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			c.VolumeMounts = []corev1.VolumeMount{{Name: "d", MountPath: "/d"}}
		}))
	b.api.await(t, "safe", "succeeded or failed", func(p *corev1.Pod) bool { return p != nil && podspec.Finished(p.Status.Phase) })
	if err := saw(b.logs("safe", "", &corev1.PodLogOptions{}), "1000\n1001\n1001 2000 3000\ntouch: /x: Read-only file system\nwritable\n"+
		"CapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"); err != nil {
		t.Error(err)
	}
	b.create(shell("root", "true", func(p *corev1.Pod) { p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true)} }))
	b.api.await(t, "root", "refused", waitsFor("CreateContainerConfigError", "container has runAsNonRoot and image will run as root"))
	b.remove("safe")
	b.remove("root")
	b.nothingLeft()
}
