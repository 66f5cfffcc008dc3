package validation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api/podspec"
)

// servedVolumes are the volume sources that the kubelet can mount.
var servedVolumes = []string{"emptyDir", "hostPath", "configMap", "secret", "downwardAPI", "projected"}

// How minik8s reacts to a field that it does not support.
const (
	refuse reaction = iota // the pod could not do its work
	warn                   // the pod runs, but without this
)

type reaction int

// unserved is a field of a pod that this version does not support. One of the functions reports whether a pod uses it.
// To support the field, delete its line.
type unserved struct {
	path    string // below spec, or below the container, the variable or the mount
	how     reaction
	message string

	pod       func(*corev1.PodSpec) bool
	container func(*corev1.Container) bool
	env       func(*corev1.EnvVarSource) bool
	mount     func(*corev1.VolumeMount) bool
	volume    func(*corev1.VolumeSource) bool
}

const later = " not served by this version of minik8s"

// notServed is the only list of unsupported fields.
var notServed = []unserved{
	{path: "runtimeClassName", how: refuse, message: "runtime classes are" + later + ": every pod runs on runc",
		pod: func(s *corev1.PodSpec) bool { return s.RuntimeClassName != nil && *s.RuntimeClassName != "" }},
	{path: "overhead", how: refuse, message: "overhead comes from a runtime class, and those are" + later,
		pod: func(s *corev1.PodSpec) bool { return len(s.Overhead) > 0 }},
	{path: "os.name", how: refuse, message: "windows is" + later + ": nodes run linux",
		pod: func(s *corev1.PodSpec) bool { return s.OS != nil && s.OS.Name == corev1.Windows }},
	{path: "hostUsers", how: refuse, message: "user namespaces are" + later,
		pod: func(s *corev1.PodSpec) bool { return s.HostUsers != nil && !*s.HostUsers }},
	{path: "resourceClaims", how: refuse, message: "resource claims are" + later,
		pod: func(s *corev1.PodSpec) bool { return len(s.ResourceClaims) > 0 }},
	{path: "resources", how: refuse, message: "resources of a pod as a whole are" + later + ": give each container its own",
		pod: func(s *corev1.PodSpec) bool { return s.Resources != nil }},
	{path: "schedulingGroup", how: refuse, message: "scheduling groups are" + later,
		pod: func(s *corev1.PodSpec) bool { return s.SchedulingGroup != nil }},
	{path: "evictionResponders", how: warn, message: "they are" + later,
		pod: func(s *corev1.PodSpec) bool { return len(s.EvictionResponders) > 0 }},
	{path: "securityContext.seLinuxOptions", how: warn, message: "SELinux is" + later,
		pod: func(s *corev1.PodSpec) bool {
			return s.SecurityContext != nil && s.SecurityContext.SELinuxOptions != nil
		}},
	{path: "securityContext.appArmorProfile", how: warn, message: "AppArmor is" + later,
		pod: func(s *corev1.PodSpec) bool {
			return s.SecurityContext != nil && s.SecurityContext.AppArmorProfile != nil
		}},
	{path: "securityContext.fsGroupChangePolicy", how: warn, message: "it is" + later + ": the group is set at each start",
		pod: func(s *corev1.PodSpec) bool {
			return s.SecurityContext != nil && s.SecurityContext.FSGroupChangePolicy != nil
		}},
	{path: "securityContext.seLinuxChangePolicy", how: warn, message: "SELinux is" + later,
		pod: func(s *corev1.PodSpec) bool {
			return s.SecurityContext != nil && s.SecurityContext.SELinuxChangePolicy != nil
		}},
	{path: "securityContext.windowsOptions", how: refuse, message: "windows is" + later,
		pod: func(s *corev1.PodSpec) bool {
			return s.SecurityContext != nil && s.SecurityContext.WindowsOptions != nil
		}},

	{path: "volumeDevices", how: refuse, message: "block devices are" + later,
		container: func(c *corev1.Container) bool { return len(c.VolumeDevices) > 0 }},
	{path: "resources", how: warn, message: "ephemeral-storage counts for the scheduler and is not enforced",
		container: func(c *corev1.Container) bool {
			_, limit := c.Resources.Limits[corev1.ResourceEphemeralStorage]
			return limit
		}},
	{path: "resources.claims", how: refuse, message: "resource claims are" + later,
		container: func(c *corev1.Container) bool { return len(c.Resources.Claims) > 0 }},
	{path: "restartPolicy", how: refuse, message: "a restart policy of a single container is" + later + ", but for Always of an init container",
		container: func(c *corev1.Container) bool { return c.RestartPolicy != nil }},
	{path: "restartPolicyRules", how: refuse, message: "restart rules are" + later,
		container: func(c *corev1.Container) bool { return len(c.RestartPolicyRules) > 0 }},
	{path: "resizePolicy", how: warn, message: "resizing is" + later,
		container: func(c *corev1.Container) bool { return len(c.ResizePolicy) > 0 }},
	{path: "securityContext.seLinuxOptions", how: warn, message: "SELinux is" + later,
		container: func(c *corev1.Container) bool {
			return c.SecurityContext != nil && c.SecurityContext.SELinuxOptions != nil
		}},
	{path: "securityContext.appArmorProfile", how: warn, message: "AppArmor is" + later,
		container: func(c *corev1.Container) bool {
			return c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil
		}},
	{path: "securityContext.windowsOptions", how: refuse, message: "windows is" + later,
		container: func(c *corev1.Container) bool {
			return c.SecurityContext != nil && c.SecurityContext.WindowsOptions != nil
		}},

	{path: "valueFrom.fileKeyRef", how: refuse, message: "a variable from a file is" + later,
		env: func(v *corev1.EnvVarSource) bool { return v.FileKeyRef != nil }},

	{path: "recursiveReadOnly", how: refuse, message: "recursive read-only mounts are" + later,
		mount: func(m *corev1.VolumeMount) bool {
			return m.RecursiveReadOnly != nil && *m.RecursiveReadOnly != corev1.RecursiveReadOnlyDisabled
		}},
	{path: "bindMountOptions", how: refuse, message: "they are" + later,
		mount: func(m *corev1.VolumeMount) bool { return len(m.BindMountOptions) > 0 }},

	{path: "projected.sources", how: refuse, message: "trust bundles and certificates are" + later + "; configMap, secret, downwardAPI and serviceAccountToken are",
		volume: func(v *corev1.VolumeSource) bool {
			return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
				return s.ClusterTrustBundle != nil || s.PodCertificate != nil
			})
		}},
	{path: "user", how: warn, message: "owners of single files are" + later + ": they belong to root, and to the pod's fsGroup",
		volume: ownsFiles},
	{path: "emptyDir.medium", how: refuse, message: "huge pages are" + later + "; Memory is",
		volume: func(v *corev1.VolumeSource) bool {
			return v.EmptyDir != nil && v.EmptyDir.Medium != "" && v.EmptyDir.Medium != corev1.StorageMediumMemory
		}},
	{path: "emptyDir.sizeLimit", how: warn, message: "a limit is enforced with medium Memory only",
		volume: func(v *corev1.VolumeSource) bool {
			return v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory
		}},
}

// ownsFiles reports whether a volume sets the owner of its files.
func ownsFiles(v *corev1.VolumeSource) bool {
	keys := func(user *int64, items []corev1.KeyToPath) bool {
		return user != nil || slices.ContainsFunc(items, func(k corev1.KeyToPath) bool { return k.User != nil })
	}
	files := func(user *int64, items []corev1.DownwardAPIVolumeFile) bool {
		return user != nil || slices.ContainsFunc(items, func(f corev1.DownwardAPIVolumeFile) bool { return f.User != nil })
	}
	switch {
	case v.ConfigMap != nil:
		return keys(v.ConfigMap.DefaultUser, v.ConfigMap.Items)
	case v.Secret != nil:
		return keys(v.Secret.DefaultUser, v.Secret.Items)
	case v.DownwardAPI != nil:
		return files(v.DownwardAPI.DefaultUser, v.DownwardAPI.Items)
	case v.Projected != nil:
		return v.Projected.DefaultUser != nil || slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
			return s.ConfigMap != nil && keys(nil, s.ConfigMap.Items) || s.Secret != nil && keys(nil, s.Secret.Items) ||
				s.DownwardAPI != nil && files(nil, s.DownwardAPI.Items) || s.ServiceAccountToken != nil && s.ServiceAccountToken.User != nil
		})
	}
	return false
}

// NotServed returns what a pod uses and this version does not support: refused is what the pod cannot run correctly
// without, warnings is the rest.
func NotServed(spec *corev1.PodSpec, path *field.Path) (refused field.ErrorList, warnings []string) {
	found := func(f *unserved, at *field.Path) {
		if at = at.Child(f.path); f.how == refuse {
			refused = append(refused, field.Forbidden(at, f.message))
		} else {
			warnings = append(warnings, at.String()+": "+f.message)
		}
	}
	for i := range notServed {
		f := &notServed[i]
		if f.pod != nil && f.pod(spec) {
			found(f, path)
		}
		if f.volume != nil {
			for j := range spec.Volumes {
				if f.volume(&spec.Volumes[j].VolumeSource) {
					found(f, path.Child("volumes").Index(j))
				}
			}
		}
		for j := range spec.InitContainers {
			c := spec.InitContainers[j]
			if podspec.IsSidecar(&c) {
				c.RestartPolicy = nil // a sidecar
			}
			inContainer(f, &c, path.Child("initContainers").Index(j), found)
		}
		for j := range spec.Containers {
			inContainer(f, &spec.Containers[j], path.Child("containers").Index(j), found)
		}
		for j := range spec.EphemeralContainers {
			c := corev1.Container(spec.EphemeralContainers[j].EphemeralContainerCommon)
			// Kubernetes forbids these here itself.
			c.Resources, c.ResizePolicy, c.RestartPolicy, c.RestartPolicyRules = corev1.ResourceRequirements{}, nil, nil, nil
			inContainer(f, &c, path.Child("ephemeralContainers").Index(j), found)
		}
	}
	for i := range spec.Volumes {
		for _, source := range sourcesOf(&spec.Volumes[i].VolumeSource) {
			if !slices.Contains(servedVolumes, source) {
				refused = append(refused, field.Forbidden(path.Child("volumes").Index(i).Child(source), "volumes of this kind are"+later))
			}
		}
	}
	return refused, warnings
}

func inContainer(f *unserved, c *corev1.Container, path *field.Path, found func(*unserved, *field.Path)) {
	if f.container != nil && f.container(c) {
		found(f, path)
	}
	if f.env != nil {
		for i := range c.Env {
			if v := c.Env[i].ValueFrom; v != nil && f.env(v) {
				found(f, path.Child("env").Index(i))
			}
		}
	}
	if f.mount != nil {
		for i := range c.VolumeMounts {
			if f.mount(&c.VolumeMounts[i]) {
				found(f, path.Child("volumeMounts").Index(i))
			}
		}
	}
}
