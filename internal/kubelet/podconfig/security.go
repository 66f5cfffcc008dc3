package podconfig

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"minik8s/internal/kubelet/cri"
)

// securityOf merges the pod's and the container's securityContext; the container's wins.
func securityOf(pod *corev1.Pod, c *corev1.Container) cri.Security {
	s := cri.Security{MaskProc: true, Seccomp: "RuntimeDefault"}
	if p := pod.Spec.SecurityContext; p != nil {
		s.RunAsUser, s.RunAsGroup = p.RunAsUser, p.RunAsGroup
		s.SupplementalGroups = append(s.SupplementalGroups, p.SupplementalGroups...)
		s.StrictGroups = ptr.Deref(p.SupplementalGroupsPolicy, corev1.SupplementalGroupsPolicyMerge) == corev1.SupplementalGroupsPolicyStrict
		if p.FSGroup != nil {
			s.SupplementalGroups = append(s.SupplementalGroups, *p.FSGroup)
		}
		setSeccomp(&s, p.SeccompProfile)
	}
	sc := c.SecurityContext
	if sc == nil {
		return s
	}
	if sc.RunAsUser != nil {
		s.RunAsUser = sc.RunAsUser
	}
	if sc.RunAsGroup != nil {
		s.RunAsGroup = sc.RunAsGroup
	}
	s.Privileged = ptr.Deref(sc.Privileged, false)
	s.ReadOnlyRootFS = ptr.Deref(sc.ReadOnlyRootFilesystem, false)
	s.NoNewPrivileges = !s.Privileged && !ptr.Deref(sc.AllowPrivilegeEscalation, true)
	if caps := sc.Capabilities; caps != nil {
		for _, name := range caps.Add {
			s.AddCapabilities = append(s.AddCapabilities, capability(name))
		}
		for _, name := range caps.Drop {
			s.DropCapabilities = append(s.DropCapabilities, capability(name))
		}
	}
	if sc.ProcMount != nil {
		s.MaskProc = *sc.ProcMount != corev1.UnmaskedProcMount
	}
	setSeccomp(&s, sc.SeccompProfile)
	if s.Privileged {
		s.Seccomp = "Unconfined"
	}
	return s
}

func capability(name corev1.Capability) string {
	return strings.TrimPrefix(strings.ToUpper(string(name)), "CAP_")
}

// seccompDir is where Localhost profiles are looked for, as Kubernetes' default.
const seccompDir = "/var/lib/kubelet/seccomp"

func setSeccomp(s *cri.Security, p *corev1.SeccompProfile) {
	if p == nil {
		return
	}
	s.Seccomp = string(p.Type)
	if p.Type == corev1.SeccompProfileTypeLocalhost {
		s.Seccomp = filepath.Join(seccompDir, ptr.Deref(p.LocalhostProfile, ""))
	}
}

// verifyNonRoot is an error if a container with runAsNonRoot would run as root.
func (b *Builder) verifyNonRoot(ctx context.Context, pod *corev1.Pod, c *corev1.Container, s cri.Security) error {
	must := false
	if p := pod.Spec.SecurityContext; p != nil {
		must = ptr.Deref(p.RunAsNonRoot, false)
	}
	if sc := c.SecurityContext; sc != nil && sc.RunAsNonRoot != nil {
		must = *sc.RunAsNonRoot
	}
	if !must {
		return nil
	}
	if s.RunAsUser != nil {
		if *s.RunAsUser == 0 {
			return fmt.Errorf("container's runAsUser breaks non-root policy (%s)", whose(pod, c))
		}
		return nil
	}
	image, err := b.Images.ImageStatus(ctx, c.Image)
	if err != nil {
		return err
	}
	user := ""
	if image != nil {
		user, _, _ = strings.Cut(image.User, ":")
	}
	switch uid, err := strconv.Atoi(user); {
	case user == "" || err == nil && uid == 0:
		return fmt.Errorf("container has runAsNonRoot and image will run as root (%s)", whose(pod, c))
	case err != nil:
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root (%s)", user, whose(pod, c))
	}
	return nil
}

// whose is the part of a message that names the pod and the container, as in Kubernetes.
func whose(pod *corev1.Pod, c *corev1.Container) string {
	return fmt.Sprintf("pod: %q, container: %s", fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID), c.Name)
}
