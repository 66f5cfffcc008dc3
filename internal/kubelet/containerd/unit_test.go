package containerd

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
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
		if strings.Join(got, " ") != c.want || (c.want == "") != errors.Is(err, errNoCommand) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

func TestReferences(t *testing.T) {
	for ref, want := range map[string]string{
		"busybox":                          "docker.io/library/busybox:latest",
		"busybox:1.36":                     "docker.io/library/busybox:1.36",
		"minik8s/hello":                    "docker.io/minik8s/hello:latest",
		"docker.io/library/busybox:latest": "docker.io/library/busybox:latest",
		"localhost:5000/a/b":               "localhost:5000/a/b:latest",
		"registry.example/a:b@sha256:" + strings.Repeat("0", 64): "registry.example/a@sha256:" + strings.Repeat("0", 64),
		"UPPER": "", "a b": "", "": "",
	} {
		got, err := normalize(ref)
		if got != want || (want == "") != errors.Is(err, cri.ErrInvalidImageName) {
			t.Errorf("%q: %q, %v; want %q", ref, got, err, want)
		}
	}
	r := &Runtime{cfg: Config{InsecureRegistries: []string{"plain.example", "other.example:81"}}}
	for host, want := range map[string]bool{
		"localhost:5000": true, "127.0.0.1": true, "[::1]:5000": true, "plain.example:80": true, "plain.example": true,
		"other.example:81": true, "other.example:82": false, "docker.io": false,
	} {
		if got := r.plainHTTP(host); got != want {
			t.Errorf("plain HTTP to %s: %v", host, got)
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
		{"1000", cri.Security{}, "1000:1001 [2000]"},
		{"1234:5", cri.Security{}, "1234:5 []"},
		{"app", cri.Security{RunAsUser: n(7)}, "7:0 []"},
		{"app", cri.Security{RunAsGroup: n(8), SupplementalGroups: []int64{9, 9, 8}}, "1000:8 [2000 9]"},
		{"app", cri.Security{StrictGroups: true, SupplementalGroups: []int64{9}}, "1000:1001 [9]"},
		{"nobody", cri.Security{}, "error"},
		{"app:none", cri.Security{}, "error"},
	} {
		u, err := lookupUser(c.image, c.s, passwd, group)
		got := fmt.Sprintf("%d:%d %v", u.uid, u.gid, u.groups)
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
	in := specInput{
		container: cri.ContainerConfig{
			Name: "c", WorkingDir: "", OOMScoreAdj: -998,
			Env: []cri.EnvVar{{Name: "PATH", Value: "/mine"}, {Name: "B", Value: "from the pod"}},
			Mounts: []cri.Mount{
				{HostPath: "/host/deep", ContainerPath: "/data/deep"}, {HostPath: "/host", ContainerPath: "/data/", ReadOnly: true},
				{HostPath: "/h", ContainerPath: "/etc/hosts", Propagation: "HostToContainer"},
			},
			Resources: cri.Resources{CPUShares: 102, MemoryLimit: 1 << 20, PidsLimit: 10},
			Security:  cri.Security{Seccomp: "Unconfined", MaskProc: true},
		},
		sandbox: cri.SandboxConfig{Hostname: "web"},
		image:   ocispec.ImageConfig{Entrypoint: []string{"/run"}, Env: []string{"A=1", "HOSTNAME=builder", "B=2"}, WorkingDir: "/srv"},
		slotDir: "/slot", etcDir: "/pod", cgroup: "/parent/id", host: facts{oomScoreAdj: 0},
	}
	s, err := buildSpec(in)
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
	if r := resources(in.container.Resources, facts{memory2: true, countsSwap: true}); *r.Memory.Swap != 1<<20 || r.Unified["memory.oom.group"] != "1" {
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
	in.sandbox.HostNetwork, in.sandbox.HostPID, in.sandbox.HostIPC, in.container.Security.Privileged = true, true, true, true
	if s, err = buildSpec(in); err != nil || len(s.Linux.Namespaces) != 1 || len(s.Linux.MaskedPaths) != 0 || !s.Linux.Resources.Devices[0].Allow {
		t.Errorf("on the host's namespaces: %+v, %v", s.Linux, err)
	}
	in.image.Entrypoint = nil
	if _, err := buildSpec(in); !errors.Is(err, errNoCommand) {
		t.Errorf("nothing to run: %v", err)
	}
}

func TestLogFormatAndRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	l, err := openLog(path, 0, 5, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	out := &lines{stream: "stdout", to: l}
	long := strings.Repeat("x", maxLine)
	// In pieces of every size, the result is the same.
	text := "one\n\n" + long + "\n" + long + "y\n" + long + long + "\nlast"
	for len(text) > 0 {
		n := min(len(text), 1000)
		out.feed([]byte(text[:n]))
		text = text[n:]
	}
	out.end()
	l.close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(data)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		if len(f) != 4 || len(f[0]) != len("2016-10-06T00:17:09.669794202Z") || f[1] != "stdout" {
			t.Fatalf("not the format: %.80q", line)
		}
		got = append(got, f[2]+" "+strings.ReplaceAll(f[3], long, "LONG"))
	}
	want := []string{"F one", "F ", "F LONG", "P LONG", "F y", "P LONG", "F LONG", "P last"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	l, err = openLog(path, 1000, 3, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		l.write("stderr", false, fmt.Appendf(nil, "line %d", i))
	}
	l.close()
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != 3 {
		t.Errorf("after rotation there are %v, %v; want 3", files, err)
	}
	if st, err := os.Stat(path); err != nil || st.Size() > 1000 {
		t.Errorf("the current one: %v, %v", st, err)
	}
}

func TestStartFailure(t *testing.T) {
	for in, want := range map[string]string{
		`failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "nosuch": executable file not found in $PATH: unknown`: `127 exec: "nosuch": executable file not found in $PATH`,
		`failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "/x": permission denied: unknown`:                      `126 exec: "/x": permission denied`,
		`failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: mkdir /etc/passwd: not a directory: unknown`:                 `128 mkdir /etc/passwd: not a directory`,
		`OCI runtime start failed: exec format error: unknown`: `126 exec format error`,
		`failed to start shim: no space left on device`:        ``,
	} {
		msg, code, ok := startFailure(errors.New(in))
		got := ""
		if ok {
			got = fmt.Sprintf("%d %s", code, msg)
		}
		if got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
		}
	}
}
