package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"minik8s/config"
)

func load(t *testing.T, file string, env map[string]string, flags map[string]string) (*config.Config, error) {
	t.Helper()
	path := ""
	if file != "" {
		path = filepath.Join(t.TempDir(), "minik8s.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var environ []string
	for k, v := range env {
		environ = append(environ, k+"="+v)
	}
	return config.Load(path, func(k string) (string, bool) { v, ok := env[k]; return v, ok }, environ, flags)
}

func TestPrecedence(t *testing.T) {
	c, err := load(t, "api-port: 1000\nmax-pods: 20\nnode-name: file\n",
		map[string]string{"MINIK8S_MAX_PODS": "30", "MINIK8S_NODE_NAME": "env"}, map[string]string{"node-name": "flag"})
	if err != nil {
		t.Fatal(err)
	}
	if c.APIPort != 1000 || c.MaxPods != 30 || c.NodeName != "flag" || c.DataDir != "/var/lib/minik8s" {
		t.Fatalf("%+v", c)
	}
}

// Daemons with directories of their own have cgroups of their own.
func TestCgroupOfADirectory(t *testing.T) {
	seen := map[string]bool{}
	for dir, want := range map[string]string{"/var/lib/minik8s": "/minik8s", "/var/lib/minik8s/": "/minik8s", "/tmp/a": "", "/tmp/b": ""} {
		c, err := load(t, "", nil, map[string]string{"data-dir": dir})
		if err != nil {
			t.Fatal(err)
		}
		if want != "" && c.CgroupRoot != want || want == "" && (seen[c.CgroupRoot] || !strings.HasPrefix(c.CgroupRoot, "/minik8s-")) {
			t.Errorf("%s: %s", dir, c.CgroupRoot)
		}
		seen[c.CgroupRoot] = true
	}
	// One directory has one, by whatever name it is called, and also before it is there.
	real, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	var roots []string
	for _, dir := range []string{link + "/new/data", real + "/new/data"} {
		for range 2 {
			c, err := load(t, "", nil, map[string]string{"data-dir": dir})
			if err != nil {
				t.Fatal(err)
			}
			roots = append(roots, c.CgroupRoot)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if roots[0] != roots[1] || roots[1] != roots[2] || roots[2] != roots[3] {
		t.Errorf("one directory has the cgroups %v", roots)
	}
	c, err := load(t, "", nil, map[string]string{"data-dir": "/tmp/a", "cgroup-root": "/mine"})
	if err != nil || c.CgroupRoot != "/mine" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestEveryMistakeIsNamed(t *testing.T) {
	for _, x := range []struct {
		name, file string
		env, flags map[string]string
		says       []string
	}{
		{"unknown key", "api-prot: 1\n", nil, nil, []string{"api-prot", `did you mean "api-port"`}},
		{"unknown variable", "", map[string]string{"MINIK8S_API_PROT": "1"}, nil, []string{"MINIK8S_API_PROT", "api-port"}},
		{"several values", "api-port: 70000\nlog-level: loud\n", nil, map[string]string{"role": "king", "pod-cidr": "10.0.0.0"},
			[]string{"api-port", "65535", "log-level", "debug, info", "--role", "king", "pod-cidr"}},
		{"not YAML", "api-port: [\n", nil, nil, []string{"setting: value"}},
		{"given twice", "api-port: 1\napi-port: 2\n", nil, nil, []string{"api-port"}},
		{"node name", "", nil, map[string]string{"node-name": "Node_1"}, []string{"node-name", "lowercase"}},
		{"cgroup root", "", nil, map[string]string{"cgroup-root": "x"}, []string{"/minik8s"}},
		{"optimisation", "", nil, map[string]string{"without": "warm,luck"}, []string{"without", `"luck"`, "early-election"}},
		{"shutdown", "", nil, map[string]string{"shutdown-grace-period": "5s", "shutdown-grace-period-critical-pods": "6s"},
			[]string{"shutdown-grace-period-critical-pods: 6s is more than shutdown-grace-period, 5s"}},
		{"quota", "", nil, map[string]string{"etcd-quota": "1Ki"}, []string{"etcd-quota", "16Mi"}},
		{"services among pods", "", nil, map[string]string{"service-cidr": "10.244.128.0/20"}, []string{"service-cidr: 10.244.128.0/20 overlaps cluster-cidr, 10.244.0.0/16"}},
		{"services on the loopback", "", nil, map[string]string{"service-cidr": "127.1.0.0/16"}, []string{"service-cidr", "overlaps 127.0.0.0/8"}},
		{"services everywhere", "", nil, map[string]string{"service-cidr": "224.0.0.0/8"}, []string{"service-cidr", "overlaps 224.0.0.0/3"}},
		{"few services", "service-cidr: 10.96.0.0/29\n", nil, nil, []string{"service-cidr", "between /8 and /28"}},
		{"services where the machine is", "", nil, map[string]string{"node-ip": "10.96.3.4"}, []string{"service-cidr: 10.96.0.0/16 has the address of this machine, 10.96.3.4"}},
		{"node ports", "", map[string]string{"MINIK8S_SERVICE_NODE_PORT_RANGE": "32767-30000"}, nil, []string{"MINIK8S_SERVICE_NODE_PORT_RANGE", "expected two ports like 30000-32767"}},
		{"the API's port", "", nil, map[string]string{"api-port": "30001"}, []string{"service-node-port-range: 30000-32767 has the port of the API, 30001"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, err := load(t, x.file, x.env, x.flags)
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, s := range x.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("nothing of %q in: %v", s, err)
				}
			}
		})
	}
}

// Critical pods have a part of the time that there is, and without a word of the user's a quarter.
func TestShutdownGracePeriods(t *testing.T) {
	for _, c := range []struct{ all, critical, want string }{
		{"", "", "40s 10s"}, {"8s", "", "8s 2s"}, {"8s", "8s", "8s 8s"}, {"8s", "0", "8s 0s"}, {"0", "", "0s 0s"}, {"0", "5s", "0s 5s"},
	} {
		flags := map[string]string{}
		for name, v := range map[string]string{"shutdown-grace-period": c.all, "shutdown-grace-period-critical-pods": c.critical} {
			if v != "" {
				flags[name] = v
			}
		}
		got, err := load(t, "", nil, flags)
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(got.ShutdownGracePeriod, got.ShutdownGracePeriodCriticalPods); text != c.want {
			t.Errorf("%q, %q: %s, want %s", c.all, c.critical, text, c.want)
		}
	}
}

// What is printed is what would be read.
func TestPrintedConfigurationLoads(t *testing.T) {
	c, err := load(t, "", nil, map[string]string{"node-name": "n1", "node-ip": "10.1.1.1", "node-labels": "a=b,c=d",
		"insecure-registries": "r:5000,s:5000", "etcd-quota": "512Mi", "random-host-ports": "true"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := load(t, c.Print(), nil, nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, c.Print())
	}
	if again.Print() != c.Print() {
		t.Fatalf("printed\n%s\nread\n%s", c.Print(), again.Print())
	}
	for _, k := range config.Keys {
		if k.Doc == "" || !strings.Contains(c.Print(), "\n"+k.Name+":") {
			t.Errorf("%s is not printed with what it means", k.Name)
		}
	}
}

func TestListsInTheFile(t *testing.T) {
	c, err := load(t, "role: [master, worker]\nnode-labels: {a: b}\nmax-pods: 250\n", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Has(config.Master) || !c.Has(config.Worker) || c.NodeLabels["a"] != "b" || c.MaxPods != 250 {
		t.Fatalf("%+v", c)
	}
}

// An etcd that others run: what goes with it and what does not; no part of a URL that may be a secret is told.
func TestExternalEtcd(t *testing.T) {
	const servers = "https://a:2379,https://b"
	for says, flags := range map[string]map[string]string{
		"only masters":        {"role": "worker", "server": "https://m", "etcd-servers": servers},
		"by --etcd-certfile":  {"etcd-servers": "https://u:abc@a:2379"},
		"expected URLs like":  {"etcd-servers": "https://u:abc@:2379:x"},
		"a path or query":     {"etcd-servers": "https://a:2379/?token=abc"},
		"some http":           {"etcd-servers": "https://a:2379,http://b:2379"},
		"the URLs have http":  {"etcd-servers": "http://a:2379", "etcd-cafile": "/x"},
		"only with the other": {"etcd-servers": servers, "etcd-certfile": "/x"},
		"etcd-cafile: it is about an etcd that others run":  {"etcd-cafile": "/x"},
		"etcd-prefix: it is about an etcd that others run":  {"etcd-prefix": "/x"},
		"expected a path below the root":                    {"etcd-servers": servers, "etcd-prefix": "x/"},
		"between 10s and 1000h0m0s, or 0":                   {"etcd-servers": servers, "etcd-compaction-interval": "9s"},
		"etcd-port: it is a setting of the etcd inside":     {"etcd-servers": servers, "etcd-port": "2381"},
		"snapshot-interval: it is a setting of the etcd in": {"etcd-servers": servers, "snapshot-interval": "1h"},
	} {
		_, err := load(t, "", nil, flags)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "abc") {
			t.Errorf("%v: %v", flags, err)
		}
	}
	c, err := load(t, "", nil, map[string]string{"etcd-servers": servers, "etcd-cafile": "ca.crt", "etcd-certfile": "/c", "etcd-keyfile": "/k"})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(c.EtcdServers, " ") != "https://a:2379 https://b:2379" || c.EtcdPrefix != "/minik8s" || !filepath.IsAbs(c.EtcdCAFile) {
		t.Errorf("%+v", c)
	}
	if again, err := load(t, c.Print(), nil, nil); err != nil || again.Print() != c.Print() {
		t.Errorf("%v in\n%s", err, c.Print())
	}
}

// A Prometheus for autoscalers: what goes with it and what does not; its password is told to nobody.
func TestPrometheus(t *testing.T) {
	const u = "https://u:abc@metrics:9090/p"
	for says, flags := range map[string]map[string]string{
		"expected the URL of a Prometheus":                   {"prometheus": "https://u:abc@:9090"},
		"https://user:password@metrics":                      {"prometheus": "u:abc@metrics"},
		"like http://127.0.0.1:9090":                         {"prometheus": u + "?a=b"},
		"only masters ask it":                                {"role": "worker", "server": "https://m", "prometheus": u},
		"prometheus-rules: it is about a Prometheus":         {"prometheus-rules": "/x"},
		"prometheus-token-file: the URL of prometheus has a": {"prometheus": u, "prometheus-token-file": "/x"},
		"prometheus-cafile: the URL of prometheus has http,": {"prometheus": "http://metrics", "prometheus-cafile": "/x"},
	} {
		_, err := load(t, "", nil, flags)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "abc") {
			t.Errorf("%v: %v", flags, err)
		}
	}
	c, err := load(t, "prometheus: "+u+"\n", nil, map[string]string{"prometheus-rules": "rules.yaml", "prometheus-cafile": "/ca"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Prometheus != u || !filepath.IsAbs(c.PrometheusRules) || strings.Contains(c.Print(), "abc") {
		t.Errorf("%+v", c)
	}
}

// Another registry for functions' images: what its name may be; a login in it is told to nobody.
func TestFunctionRegistry(t *testing.T) {
	for v, says := range map[string]string{"https://r.example": "without a scheme", "me:abc@r.example/x": "without a login", "registry/x": "HOST is localhost or has a dot",
		"r.example/X": "small letters", "r.example/" + strings.Repeat("a", 200): "at most", "r.example/": "expected HOST"} {
		_, err := load(t, "", nil, map[string]string{"function-registry": v})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "abc") {
			t.Errorf("%s: %v", v, err)
		}
	}
	for _, v := range []string{"", "docker.io/me", "localhost:5000", "[::1]:5000/a/b", "10.0.0.1:5000", "registry.example.org/cluster-1"} {
		c, err := load(t, "", nil, map[string]string{"function-registry": v, "registry-authfile": "config.json"})
		if err != nil || c.FunctionRegistry != v || !filepath.IsAbs(c.RegistryAuthFile) || c.Shared()["function-registry"] != v {
			t.Errorf("%s: %v", v, err)
		}
	}
}

// A Node manifest of a seed system gives name, labels and range; what is said otherwise wins.
func TestNodeConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("apiVersion: v1\nkind: Node\nmetadata:\n  name: node1\n  labels: {kubernetes.io/os: linux, a: b}\nspec:\n  podCIDR: 10.244.1.0/24\n  podCIDRs: [10.244.1.0/24]\n")
	seed := func(name string) (string, bool) { return file, name == "NODE_CONFIG" }
	none := func(string) (string, bool) { return "", false }
	for _, x := range []struct {
		lookup func(string) (string, bool)
		flags  map[string]string
		name   string
	}{
		{seed, nil, "node1"},
		{none, map[string]string{"node-config": file}, "node1"},
		{seed, map[string]string{"node-name": "mine"}, "mine"},
	} {
		c, err := config.Load("", x.lookup, nil, x.flags)
		if err != nil || c.NodeName != x.name || c.PodCIDR.String() != "10.244.1.0/24" || c.NodeLabels["a"] != "b" || len(c.NodeLabels) != 2 {
			t.Errorf("%+v, %v", c, err)
		}
	}
	for text, want := range map[string]string{"kind: Pod\n": `kind is "Pod": expected Node`, "- a\n": "expected a Node manifest",
		"kind: Node\nmetadata: {name: A_b}\n": "A_b", "kind: Node\nspec: {podCIDR: 10.9.0.0/24}\n": "not within the cluster's range"} {
		write(text)
		if _, err := config.Load("", seed, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Settings that do not go together are refused before anything starts.
func TestTogether(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	for _, x := range []struct {
		flags map[string]string
		says  string
	}{
		{map[string]string{"role": "worker", "server": "http://10.0.0.1"}, "expected a URL like"},
		{map[string]string{"pod-cidr": "10.9.0.0/24"}, "--cluster-cidr"},
		{map[string]string{"node-grace-period": "5m"}, "a node is lost before it is removed"},
		{map[string]string{"token": "abc", "role": "king"}, "king"},
	} {
		_, err := config.Load("", none, nil, x.flags)
		if err == nil || !strings.Contains(err.Error(), x.says) || strings.Contains(err.Error(), "abc") {
			t.Errorf("%v: %v", x.flags, err)
		}
	}
	c, err := config.Load("", none, nil, map[string]string{"role": "worker", "server": "https://m", "token": "abc"})
	if err != nil || c.Server != "https://m:6443" || c.PodCIDR.IsValid() || strings.Contains(c.Print(), "abc") {
		t.Errorf("%+v, %v", c, err)
	}
}
