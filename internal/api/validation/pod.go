package validation

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Pod checks a pod's spec. ObjectMeta checks its metadata.
func Pod(pod *corev1.Pod) field.ErrorList {
	path := field.NewPath("spec")
	errs := PodSpec(&pod.Spec, &pod.ObjectMeta, path)
	if pod.Spec.NodeName != "" && len(pod.Spec.SchedulingGates) > 0 { // gates have no effect on a pod with a node
		errs = append(errs, field.Forbidden(path.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"))
	}
	return errs
}

// PodSpec checks the spec of a pod, or of a workload's template, with the metadata meta.
func PodSpec(spec *corev1.PodSpec, meta *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	errs, declared := volumes(spec.Volumes, path.Child("volumes"))
	errs = append(errs, containers(spec, declared, path)...)
	errs = append(errs, oneOf(path.Child("restartPolicy"), spec.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	errs = append(errs, dns(spec, path)...)
	errs = append(errs, scheduling(spec, path)...)
	errs = append(errs, podSecurity(spec, path)...)
	errs = append(errs, names(spec, path)...)
	if d := spec.ActiveDeadlineSeconds; d != nil && (*d < 1 || *d > math.MaxInt32) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *d, validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	if p := spec.PreemptionPolicy; p != nil {
		errs = append(errs, oneOf(path.Child("preemptionPolicy"), *p, corev1.PreemptLowerPriority, corev1.PreemptNever)...)
	}
	if spec.OS != nil {
		errs = append(errs, oneOf(path.Child("os", "name"), spec.OS.Name, corev1.Linux, corev1.Windows)...)
	}
	if as := spec.SetHostnameAsFQDN; as != nil && *as && spec.Hostname == "" && meta != nil && len(meta.Name) > maxHostname {
		errs = append(errs, field.Invalid(path.Child("setHostnameAsFQDN"), true, "the pod's name is longer than the 64 bytes that a host name may have"))
	}
	for i, alias := range spec.HostAliases {
		at := path.Child("hostAliases").Index(i)
		errs = append(errs, validation.IsValidIPForLegacyField(at.Child("ip"), alias.IP, true, nil)...)
		for j, host := range alias.Hostnames {
			errs = append(errs, say(at.Child("hostnames").Index(j), host, validation.IsDNS1123Subdomain(host))...)
		}
	}
	return errs
}

// names checks the fields that are names, and references to other objects.
func names(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	check := func(child, value string, rule func(string) []string) {
		if value != "" {
			errs = append(errs, say(path.Child(child), value, rule(value))...)
		}
	}
	check("hostname", spec.Hostname, validation.IsDNS1123Label)
	check("subdomain", spec.Subdomain, validation.IsDNS1123Label)
	check("nodeName", spec.NodeName, validation.IsDNS1123Subdomain)
	check("serviceAccountName", spec.ServiceAccountName, validation.IsDNS1123Subdomain)
	check("priorityClassName", spec.PriorityClassName, validation.IsDNS1123Subdomain)
	if o := spec.HostnameOverride; o != nil {
		errs = append(errs, hostnameOverride(*o, spec, path.Child("hostnameOverride"))...)
	}
	if spec.RuntimeClassName != nil {
		check("runtimeClassName", *spec.RuntimeClassName, validation.IsDNS1123Subdomain)
	}
	if spec.SchedulerName != "" {
		check("schedulerName", spec.SchedulerName, validation.IsDNS1123Subdomain)
	}
	for i, ref := range spec.ImagePullSecrets {
		errs = append(errs, required(path.Child("imagePullSecrets").Index(i).Child("name"), ref.Name)...)
	}
	return errs
}

// hostnameOverride checks a pod that sets its whole host name: no other field may then set it.
func hostnameOverride(name string, spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	errs := say(path, name, validation.IsDNS1123Subdomain(name))
	if len(name) > maxHostname {
		errs = append(errs, field.TooLong(path, name, maxHostname))
	}
	if as := spec.SetHostnameAsFQDN; as != nil && *as {
		errs = append(errs, field.Forbidden(path, "may not be specified when setHostnameAsFQDN is true"))
	}
	if spec.HostNetwork {
		errs = append(errs, field.Forbidden(path, "may not be specified when hostNetwork is true"))
	}
	return errs
}

// maxHostname is the kernel's limit.
const maxHostname = 64

// The resolver's limits.
const (
	maxNameservers = 3
	maxSearches    = 32
	maxSearchChars = 2048
)

func dns(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("dnsPolicy"), spec.DNSPolicy,
		corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)
	config, at := spec.DNSConfig, path.Child("dnsConfig")
	if spec.DNSPolicy == corev1.DNSNone && (config == nil || len(config.Nameservers) == 0) {
		errs = append(errs, field.Required(at.Child("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None"))
	}
	if config == nil {
		return errs
	}
	if n := len(config.Nameservers); n > maxNameservers {
		errs = append(errs, field.TooMany(at.Child("nameservers"), n, maxNameservers))
	}
	for i, ns := range config.Nameservers {
		errs = append(errs, validation.IsValidIPForLegacyField(at.Child("nameservers").Index(i), ns, true, nil)...)
	}
	if n := len(config.Searches); n > maxSearches {
		errs = append(errs, field.TooMany(at.Child("searches"), n, maxSearches))
	}
	if len(strings.Join(config.Searches, " ")) > maxSearchChars {
		errs = append(errs, field.Invalid(at.Child("searches"), config.Searches, "must not have more than 2048 characters (including spaces) in the search list"))
	}
	for i, search := range config.Searches {
		if search != "." {
			name := strings.TrimSuffix(search, ".")
			errs = append(errs, say(at.Child("searches").Index(i), search, validation.IsDNS1123SubdomainWithUnderscore(name))...)
		}
	}
	for i, option := range config.Options {
		errs = append(errs, required(at.Child("options").Index(i).Child("name"), option.Name)...)
	}
	return errs
}

// podSecurity checks the pod's security context, and what the pod shares with its host.
func podSecurity(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if share := spec.ShareProcessNamespace; share != nil && *share && spec.HostPID {
		errs = append(errs, field.Invalid(path.Child("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled"))
	}
	sc := spec.SecurityContext
	if sc == nil {
		return errs
	}
	at := path.Child("securityContext")
	errs = append(errs, ids(sc.RunAsUser, sc.RunAsGroup, at)...)
	if sc.FSGroup != nil {
		errs = append(errs, say(at.Child("fsGroup"), *sc.FSGroup, validation.IsValidGroupID(*sc.FSGroup))...)
	}
	for i, gid := range sc.SupplementalGroups {
		errs = append(errs, say(at.Child("supplementalGroups").Index(i), gid, validation.IsValidGroupID(gid))...)
	}
	errs = append(errs, optional(at.Child("supplementalGroupsPolicy"), sc.SupplementalGroupsPolicy,
		corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)...)
	errs = append(errs, optional(at.Child("fsGroupChangePolicy"), sc.FSGroupChangePolicy,
		corev1.FSGroupChangeOnRootMismatch, corev1.FSGroupChangeAlways)...)
	errs = append(errs, seccomp(sc.SeccompProfile, at.Child("seccompProfile"))...)
	seen := sets.New[string]()
	for i, s := range sc.Sysctls {
		name := at.Child("sysctls").Index(i).Child("name")
		// net.ipv4.ip_forward or net/ipv4/ip_forward: each part has lower case letters, digits, - and _.
		plain := strings.NewReplacer("_", "-", "/", ".").Replace(s.Name)
		switch {
		case s.Name == "":
			errs = append(errs, field.Required(name, ""))
		case len(validation.IsDNS1123Subdomain(plain)) > 0:
			errs = append(errs, field.Invalid(name, s.Name, "must have at most 253 characters and be made of parts of a-z, 0-9, - and _ joined by dots or slashes"))
		case seen.Has(plain):
			errs = append(errs, field.Duplicate(name, s.Name))
		}
		seen.Insert(plain)
	}
	return errs
}

func ids(user, group *int64, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if user != nil {
		errs = append(errs, say(path.Child("runAsUser"), *user, validation.IsValidUserID(*user))...)
	}
	if group != nil {
		errs = append(errs, say(path.Child("runAsGroup"), *group, validation.IsValidGroupID(*group))...)
	}
	return errs
}

func seccomp(p *corev1.SeccompProfile, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := oneOf(path.Child("type"), p.Type, corev1.SeccompProfileTypeLocalhost,
		corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)
	profile := path.Child("localhostProfile")
	switch local := p.Type == corev1.SeccompProfileTypeLocalhost; {
	case local && (p.LocalhostProfile == nil || *p.LocalhostProfile == ""):
		errs = append(errs, field.Required(profile, "must be set when seccomp type is Localhost"))
	case local:
		errs = append(errs, inside(profile, *p.LocalhostProfile)...)
	case p.LocalhostProfile != nil:
		errs = append(errs, field.Invalid(profile, *p.LocalhostProfile, "can only be set when seccomp type is Localhost"))
	}
	return errs
}

// selectors checks a label selector.
func selectors(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
}
