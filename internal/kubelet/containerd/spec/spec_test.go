package spec

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"minik8s/internal/kubelet/cri"
)

func TestCommandLine(t *testing.T) {
	for _, c := range []struct{ command, args, entrypoint, cmd, want string }{
		{"", "", "ep", "cmd", "ep cmd"},
		{"", "args", "ep", "cmd", "ep args"},
		{"command", "", "ep", "cmd", "command"},
		{"command", "args", "ep", "cmd", "command args"},
		{"", "args", "", "", "args"},
		{"", "", "", "cmd", "cmd"},
		{"", "", "", "", ""},
	} {
		got, err := commandLine(strings.Fields(c.command), strings.Fields(c.args), strings.Fields(c.entrypoint), strings.Fields(c.cmd))
		if strings.Join(got, " ") != c.want || (c.want == "") != errors.Is(err, ErrNoCommand) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

func TestHostsNames(t *testing.T) {
	const domain = "sub.ns.svc.cluster.local"
	for _, x := range []struct{ hostname, domain, want string }{
		{"web", "", "10.0.0.5\tweb\n"},
		{"web", domain, "10.0.0.5\tweb." + domain + "\tweb\n"},
		{"web." + domain, domain, "10.0.0.5\tweb." + domain + "\tweb\n"}, // setHostnameAsFQDN
		{"", "", ""},
	} {
		hosts := string(podHosts(cri.SandboxConfig{Hostname: x.hostname, Domain: x.domain}, netip.MustParseAddr("10.0.0.5")))
		if _, got, _ := strings.Cut(hosts, "ip6-allrouters\n"); got != x.want {
			t.Errorf("%+v: %q", x, got)
		}
	}
}

func TestHostsFile(t *testing.T) {
	got := string(podHosts(cri.SandboxConfig{
		Hostname: "web", Domain: "sub.ns.svc.cluster.local",
		HostAliases: []cri.HostAlias{{IP: "1.2.3.4", Hostnames: []string{"foo", "bar"}}},
	}, netip.MustParseAddr("10.0.0.5")))
	want := "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n" +
		"10.0.0.5\tweb.sub.ns.svc.cluster.local\tweb\n\n# Entries added by HostAliases.\n1.2.3.4\tfoo\tbar\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	dns := string(resolvConf(cri.DNS{Servers: []string{"10.0.0.10", "1.1.1.1"}, Searches: []string{"a", "b"}, Options: []string{"ndots:5"}}))
	if want := "search a b\nnameserver 10.0.0.10\nnameserver 1.1.1.1\noptions ndots:5\n"; dns != want {
		t.Errorf("resolv.conf %q, want %q", dns, want)
	}
}

func TestUsers(t *testing.T) {
	const passwd = "root:x:0:0::/root:/bin/sh\napp:x:1000:1001::/:/bin/sh\n"
	const group = "root:x:0:root\napp:x:1001:\nextra:x:2000:app,other\n"
	n := func(v int64) *int64 { return &v }
	for _, c := range []struct {
		image string
		s     cri.Security
		want  string
	}{
		{"", cri.Security{}, "0:0 []"},
		{"app", cri.Security{}, "1000:1001 [2000]"},
		{"app:extra", cri.Security{}, "1000:2000 []"},
		{"app:1001", cri.Security{}, "1000:1001 [2000]"},
		{"app:7", cri.Security{StrictGroups: true}, "1000:7 []"},
		{"4294967296", cri.Security{}, "error"},
		{"1000", cri.Security{}, "1000:1001 [2000]"},
		{"1234:5", cri.Security{}, "1234:5 []"},
		{"app", cri.Security{RunAsUser: n(7)}, "7:0 []"},
		{"app", cri.Security{RunAsGroup: n(8), SupplementalGroups: []int64{9, 9, 8}}, "1000:8 [2000 9]"},
		{"app", cri.Security{StrictGroups: true, SupplementalGroups: []int64{9}}, "1000:1001 [9]"},
		{"nobody", cri.Security{}, "error"},
		{"app:none", cri.Security{}, "error"},
	} {
		u, err := LookupUser(c.image, c.s, passwd, group)
		got := fmt.Sprintf("%d:%d %v", u.UID, u.GID, u.Groups)
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%q %+v: %s, want %s", c.image, c.s, got, c.want)
		}
	}
}

func TestCapabilities(t *testing.T) {
	have := append(slices.Clone(defaultCapabilities), "CAP_NET_ADMIN", "CAP_SYS_ADMIN")
	for _, c := range []struct {
		s    cri.Security
		want func([]string) bool
	}{
		{cri.Security{}, func(l []string) bool { return slices.Equal(l, defaultCapabilities) }},
		{cri.Security{AddCapabilities: []string{"NET_ADMIN", "SYS_TIME"}}, func(l []string) bool {
			return slices.Contains(l, "CAP_NET_ADMIN") && !slices.Contains(l, "CAP_SYS_TIME")
		}},
		{cri.Security{DropCapabilities: []string{"ALL"}, AddCapabilities: []string{"KILL"}}, func(l []string) bool {
			return slices.Equal(l, []string{"CAP_KILL"})
		}},
		{cri.Security{DropCapabilities: []string{"KILL"}}, func(l []string) bool { return !slices.Contains(l, "CAP_KILL") && len(l) == len(defaultCapabilities)-1 }},
		{cri.Security{Privileged: true}, func(l []string) bool { return slices.Equal(l, have) }},
	} {
		got, err := capabilities(c.s, have)
		if err != nil || !c.want(got) {
			t.Errorf("%+v: %v, %v", c.s, got, err)
		}
	}
}

func TestSpec(t *testing.T) {
	in := Input{
		Container: cri.ContainerConfig{
			Name: "c", WorkingDir: "", OOMScoreAdj: -998,
			Env: []cri.EnvVar{{Name: "PATH", Value: "/mine"}, {Name: "B", Value: "from the pod"}},
			Mounts: []cri.Mount{
				{HostPath: "/host/deep", ContainerPath: "/data/deep"}, {HostPath: "/host", ContainerPath: "/data/", ReadOnly: true},
				{HostPath: "/h", ContainerPath: "/etc/hosts", Propagation: "HostToContainer"},
			},
			Resources: cri.Resources{CPUShares: 102, MemoryLimit: 1 << 20, PidsLimit: 10},
			Security:  cri.Security{Seccomp: "Unconfined", MaskProc: true},
		},
		Sandbox:    cri.SandboxConfig{Hostname: "web"},
		Image:      ocispec.ImageConfig{Entrypoint: []string{"/run"}, Env: []string{"A=1", "HOSTNAME=builder", "B=2"}, WorkingDir: "/srv"},
		SandboxDir: "/slot", EtcDir: "/pod", Cgroup: "/parent/id", Host: Host{OOMScoreAdj: 0},
	}
	s, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"PATH=/mine", "A=1", "HOSTNAME=web", "B=from the pod"}; !slices.Equal(s.Process.Env, want) {
		t.Errorf("environment %q, want %q", s.Process.Env, want)
	}
	if s.Process.Cwd != "/srv" || *s.Process.OOMScoreAdj != 0 || s.Linux.RootfsPropagation != "rslave" {
		t.Errorf("cwd %s, oom %d, propagation %s", s.Process.Cwd, *s.Process.OOMScoreAdj, s.Linux.RootfsPropagation)
	}
	if r := s.Linux.Resources; r.Memory.Swap != nil || r.Unified != nil {
		t.Errorf("a kernel that counts no swap: %+v", r)
	}
	if r := resources(in.Container.Resources, Host{Memory2: true, CountsSwap: true}); *r.Memory.Swap != 1<<20 || r.Unified["memory.oom.group"] != "1" {
		t.Errorf("swap is no part of the limit: %+v", r)
	}
	index := func(dst string) int {
		return slices.IndexFunc(s.Mounts, func(m specs.Mount) bool { return m.Destination == dst })
	}
	if a, b := index("/data"), index("/data/deep"); a < 0 || b < a || !slices.Contains(s.Mounts[a].Options, "ro") {
		t.Errorf("mounts in the wrong order or shape: %v", s.Mounts)
	}
	if m := s.Mounts[index("/etc/hosts")]; m.Source != "/h" {
		t.Errorf("the pod's own /etc/hosts is %+v", m)
	}
	paths := map[specs.LinuxNamespaceType]string{}
	for _, n := range s.Linux.Namespaces {
		paths[n.Type] = n.Path
	}
	if len(paths) != 5 || paths["network"] != "/slot/net" || paths["uts"] != "/slot/uts" || paths["ipc"] != "/slot/ipc" {
		t.Errorf("namespaces %v", paths)
	}
	if len(s.Linux.MaskedPaths) == 0 || *s.Linux.Resources.CPU.Shares != 102 || s.Linux.Resources.Pids.Limit != 10 {
		t.Errorf("resources %+v", s.Linux.Resources)
	}
	in.Sandbox.HostNetwork, in.Sandbox.HostPID, in.Sandbox.HostIPC, in.Container.Security.Privileged = true, true, true, true
	if s, err = Build(in); err != nil || len(s.Linux.Namespaces) != 1 || len(s.Linux.MaskedPaths) != 0 || !s.Linux.Resources.Devices[0].Allow {
		t.Errorf("on the host's namespaces: %+v, %v", s.Linux, err)
	}
	in.Image.Entrypoint = nil
	if _, err := Build(in); !errors.Is(err, ErrNoCommand) {
		t.Errorf("nothing to run: %v", err)
	}
}
