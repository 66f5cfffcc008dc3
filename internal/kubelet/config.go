package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/resolvconf"
)

// maxHostname is what the kernel takes.
const maxHostname = 63

// hostnameOf is what `hostname` says in the pod.
func (k *Kubelet) hostnameOf(pod *corev1.Pod) string {
	if pod.Spec.HostNetwork {
		return k.cfg.NodeName
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
	if domain := k.domainOf(pod); deref(pod.Spec.SetHostnameAsFQDN, false) && domain != "" {
		return name + "." + domain
	}
	return name
}

// domainOf is the pod's DNS domain; empty without a subdomain, or if the pod's name is set as a whole.
func (k *Kubelet) domainOf(pod *corev1.Pod) string {
	if pod.Spec.Subdomain == "" || pod.Spec.HostNetwork || pod.Spec.HostnameOverride != nil {
		return ""
	}
	return pod.Spec.Subdomain + "." + pod.Namespace + ".svc." + k.cfg.ClusterDomain
}

// sandboxConfig is all of the sandbox but the cgroup and the host ports.
func (k *Kubelet) sandboxConfig(pod *corev1.Pod) (cri.SandboxConfig, error) {
	hostname := k.hostnameOf(pod)
	if len(hostname) > maxHostname+1 {
		return cri.SandboxConfig{}, fmt.Errorf("the pod's host name %q is longer than %d characters", hostname, maxHostname+1)
	}
	nodeDNS, err := resolvconf.Node()
	if err != nil {
		return cri.SandboxConfig{}, err
	}
	cfg := cri.SandboxConfig{
		PodUID: string(pod.UID), PodNamespace: pod.Namespace, PodName: pod.Name,
		Hostname: hostname, Domain: k.domainOf(pod),
		HostNetwork: pod.Spec.HostNetwork, HostPID: pod.Spec.HostPID, HostIPC: pod.Spec.HostIPC,
		ShareProcessNamespace: deref(pod.Spec.ShareProcessNamespace, false),
		DNS:                   k.dnsOf(pod, resolvconf.Parse(nodeDNS)),
		Resources:             podResources(pod),
		LogDir:                k.logDir(pod),
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

// containerConfig is all that the runtime needs for one attempt of a container.
func (k *Kubelet) containerConfig(ctx context.Context, pod *corev1.Pod, c *corev1.Container, attempt int, sandbox *cri.Sandbox) (cri.ContainerConfig, error) {
	env, err := k.environment(ctx, pod, c, sandbox)
	if err != nil {
		return cri.ContainerConfig{}, err
	}
	security := securityOf(pod, c)
	if err := k.verifyNonRoot(ctx, pod, c, security); err != nil {
		return cri.ContainerConfig{}, err
	}
	values := make(map[string]string, len(env))
	for _, e := range env {
		values[e.Name] = e.Value
	}
	mounts, err := k.mountsOf(pod, c, attempt, sandbox, values)
	if err != nil {
		return cri.ContainerConfig{}, err
	}
	logPath := k.logPath(pod, c.Name, attempt)
	if err := os.MkdirAll(filepath.Dir(logPath), 0o750); err != nil {
		return cri.ContainerConfig{}, fmt.Errorf("log directory: %w", err)
	}
	cfg := cri.ContainerConfig{
		PodUID: string(pod.UID), PodNamespace: pod.Namespace, PodName: pod.Name,
		Name: c.Name, Attempt: attempt, Image: c.Image,
		Command: expandAll(c.Command, values), Args: expandAll(c.Args, values),
		Env: env, WorkingDir: c.WorkingDir, Mounts: mounts, LogPath: logPath,
		Stdin: c.Stdin, StdinOnce: c.StdinOnce, TTY: c.TTY,
		Resources:    containerResources(c),
		OOMScoreAdj:  oomScoreAdj(pod, c, k.node.Memory()),
		Security:     security,
		CgroupParent: k.cgroupOf(pod),
		Labels: map[string]string{
			"io.kubernetes.pod.namespace": pod.Namespace, "io.kubernetes.pod.name": pod.Name,
			"io.kubernetes.pod.uid": string(pod.UID), "io.kubernetes.container.name": c.Name,
		},
	}
	if l := c.Lifecycle; l != nil && l.StopSignal != nil {
		cfg.StopSignal = string(*l.StopSignal)
	}
	return cfg, nil
}

// mountsOf are the container's volumes and the file for its termination message.
func (k *Kubelet) mountsOf(pod *corev1.Pod, c *corev1.Container, attempt int, sandbox *cri.Sandbox, env map[string]string) ([]cri.Mount, error) {
	expanded := func(s string) (string, error) { return expandKnown(s, env) }
	mounts, err := k.volumes.Mounts(pod, c, expanded)
	if err != nil {
		return nil, err
	}
	file := k.terminationLog(sandbox, string(pod.UID), c.Name, attempt)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return nil, fmt.Errorf("termination log: %w", err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, fmt.Errorf("termination log: %w", err)
	}
	defer f.Close()
	if err := f.Chmod(0o666); err != nil { // any user of the container writes to it
		return nil, fmt.Errorf("termination log: %w", err)
	}
	path := c.TerminationMessagePath
	if path == "" {
		path = corev1.TerminationMessagePathDefault
	}
	return append(mounts, cri.Mount{HostPath: file, ContainerPath: path}), nil
}

func expandAll(list []string, values map[string]string) []string {
	var out []string
	for _, s := range list {
		out = append(out, expand(s, values))
	}
	return out
}
