package podconfig

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri/fake"
	"minik8s/internal/kubelet/plan/plantest"
)

func TestSecurity(t *testing.T) {
	strict := corev1.SupplementalGroupsPolicyStrict
	unmasked := corev1.UnmaskedProcMount
	pod := &corev1.PodSecurityContext{RunAsUser: new(int64(1)), FSGroup: new(int64(3)), SupplementalGroups: []int64{2}, SupplementalGroupsPolicy: &strict,
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}
	for _, c := range []struct {
		name string
		pod  *corev1.PodSecurityContext
		own  *corev1.SecurityContext
		want string
	}{
		{"none", nil, nil, "- [] false RuntimeDefault ro=false nnp=false + - mask=true"},
		{"the pod's", pod, nil, "1 [2 3] true Unconfined ro=false nnp=false + - mask=true"},
		{"the container's wins", pod, &corev1.SecurityContext{RunAsUser: new(int64(9)), ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: new("a/b.json")}, ProcMount: &unmasked,
			Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}, Drop: []corev1.Capability{"cap_chown"}}},
			"9 [2 3] true /var/lib/kubelet/seccomp/a/b.json ro=true nnp=true +NET_ADMIN -CHOWN mask=false"},
		{"privileged", nil, &corev1.SecurityContext{Privileged: new(true)}, "- [] false Unconfined ro=false nnp=false + - mask=true"},
	} {
		p := plantest.Pod("web")
		p.Spec.SecurityContext, p.Spec.Containers[0].SecurityContext = c.pod, c.own
		s := securityOf(p, &p.Spec.Containers[0])
		user := "-"
		if s.RunAsUser != nil {
			user = fmt.Sprint(*s.RunAsUser)
		}
		got := fmt.Sprintf("%s %v %v %s ro=%v nnp=%v +%s -%s mask=%v", user, s.SupplementalGroups, s.StrictGroups, s.Seccomp, s.ReadOnlyRootFS,
			s.NoNewPrivileges, strings.Join(s.AddCapabilities, ","), strings.Join(s.DropCapabilities, ","), s.MaskProc)
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestNonRootIsVerified(t *testing.T) {
	rt := fake.New("web:1")
	b := &Builder{Images: rt}
	yes, no := true, false
	for _, c := range []struct {
		name string
		pod  *bool
		own  *bool
		user *int64
		want string
	}{
		{"not asked for", nil, nil, nil, ""},
		{"the image's user is root", &yes, nil, nil, `container has runAsNonRoot and image will run as root (pod: "web_default(u1)", container: web)`},
		{"the container says it may", &yes, &no, nil, ""},
		{"a user of its own", &yes, nil, new(int64(5)), ""},
		{"which is root", nil, &yes, new(int64(0)), "container's runAsUser breaks non-root policy"},
	} {
		p := plantest.Pod("web")
		p.UID = "u1"
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: c.pod, RunAsUser: c.user}
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsNonRoot: c.own}
		got := ""
		if err := b.verifyNonRoot(t.Context(), p, &p.Spec.Containers[0], securityOf(p, &p.Spec.Containers[0])); err != nil {
			got = err.Error()
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
