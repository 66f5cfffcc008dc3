package podconfig

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/resolvconf"
)

// maxHostname is the kernel's limit, in bytes.
const maxHostname = 63

// hostnameOf is the pod's host name.
func (b *Builder) hostnameOf(pod *corev1.Pod) string {
	if pod.Spec.HostNetwork {
		return b.NodeName
	}
	if o := pod.Spec.HostnameOverride; o != nil {
		return *o
	}
	name := pod.Spec.Hostname
	if name == "" {
		name = pod.Name
		if len(name) > maxHostname {
			name = strings.TrimRight(name[:maxHostname], "-.")
		}
	}
	if domain := b.domainOf(pod); ptr.Deref(pod.Spec.SetHostnameAsFQDN, false) && domain != "" {
		return name + "." + domain
	}
	return name
}

// domainOf is the pod's DNS domain; empty without a subdomain, or if the pod's name is set as a whole.
func (b *Builder) domainOf(pod *corev1.Pod) string {
	if pod.Spec.Subdomain == "" || pod.Spec.HostNetwork || pod.Spec.HostnameOverride != nil {
		return ""
	}
	return pod.Spec.Subdomain + "." + pod.Namespace + ".svc." + b.ClusterDomain
}

// Sandbox is the configuration of a pod's sandbox except for CgroupParent and HostPorts.
func (b *Builder) Sandbox(ctx context.Context, pod *corev1.Pod, logDir string) (cri.SandboxConfig, error) {
	hostname := b.hostnameOf(pod)
	if len(hostname) > maxHostname+1 {
		return cri.SandboxConfig{}, fmt.Errorf("the pod's host name %q is longer than %d characters", hostname, maxHostname+1)
	}
	nodeDNS, err := resolvconf.Node()
	if err != nil {
		return cri.SandboxConfig{}, err
	}
	dns, err := b.dnsOf(ctx, pod, resolvconf.Parse(nodeDNS))
	if err != nil {
		return cri.SandboxConfig{}, err
	}
	cfg := cri.SandboxConfig{
		PodUID: string(pod.UID), PodNamespace: pod.Namespace, PodName: pod.Name,
		Hostname: hostname, Domain: b.domainOf(pod),
		HostNetwork: pod.Spec.HostNetwork, HostPID: pod.Spec.HostPID, HostIPC: pod.Spec.HostIPC,
		ShareProcessNamespace: ptr.Deref(pod.Spec.ShareProcessNamespace, false),
		DNS:                   dns,
		Resources:             PodResources(pod),
		LogDir:                logDir,
	}
	for _, a := range pod.Spec.HostAliases {
		cfg.HostAliases = append(cfg.HostAliases, cri.HostAlias{IP: a.IP, Hostnames: a.Hostnames})
	}
	if sc := pod.Spec.SecurityContext; sc != nil && len(sc.Sysctls) > 0 {
		cfg.Sysctls = map[string]string{}
		for _, s := range sc.Sysctls {
			cfg.Sysctls[s.Name] = s.Value
		}
	}
	return cfg, nil
}
