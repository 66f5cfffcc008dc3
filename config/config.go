package config

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Config is how a daemon runs. Load makes it; Keys says what each field means.
type Config struct {
	Roles    []string
	DataDir  string
	NodeName string
	NodeIP   netip.Addr // invalid: the address of the link to Server, or of the default route's

	// NodeConfig is the file of a Node manifest that some settings came from; empty: none.
	NodeConfig string

	// Server is the URL of a master's API, and Token the join token, of a machine that joins a cluster. Both may be empty on
	// one that has joined, and are on a master.
	Server, Token string

	APIAddress string
	APIPort    int
	// KubeletAddress is where the kubelet's server listens; empty: as APIAddress.
	KubeletAddress string
	KubeletPort    int

	// ClusterCIDR has the addresses of all pods; each node gets a range of ClusterCIDR as large as a /24.
	ClusterCIDR netip.Prefix
	// PodNetwork is how pods of other nodes are reached: VXLAN or Direct.
	PodNetwork string
	VXLANPort  int
	// ServiceCIDR has the addresses that Services get, and NodePorts the ports of nodes.
	ServiceCIDR netip.Prefix
	NodePorts   PortRange
	// LBPool has the addresses of load balancers; empty: they have those of the nodes.
	LBPool AddressPool
	// PodCIDR is the range that this node asks for; invalid: the master chooses one.
	PodCIDR       netip.Prefix
	ClusterDomain string
	ClusterDNS    []string // none: the cluster's own
	HostDNS       bool
	ResolvConf    string

	Containerd         string
	CgroupRoot         string
	MaxPods            int
	PodPidsLimit       int
	RandomHostPorts    bool
	InsecureRegistries []string
	// RegistryAuthFile is a docker config.json with this machine's logins to registries; empty: it has none.
	RegistryAuthFile  string
	NodeLabels        map[string]string
	ContainerLogSize  int64
	ContainerLogFiles int
	HeartbeatInterval time.Duration
	// ShutdownGracePeriod is how long this machine's shutdown waits for pods to end, 0: it does not;
	// ShutdownGracePeriodCriticalPods is the part of it that is kept for critical pods.
	ShutdownGracePeriod, ShutdownGracePeriodCriticalPods time.Duration

	EtcdQuota int64
	// SnapshotInterval is how often a master saves a copy of the store, 0: never; SnapshotKeep is how many it keeps.
	SnapshotInterval time.Duration
	SnapshotKeep     int
	// EtcdPort is where the other masters reach this one's etcd.
	EtcdPort int
	// EtcdServers are the URLs of an etcd that others run, in the place of the one inside; none: that one. EtcdPrefix is where
	// the cluster's keys are in it, and the files are by what this machine and that etcd know each other; each may be empty.
	EtcdServers                           []string
	EtcdPrefix                            string
	EtcdCAFile, EtcdCertFile, EtcdKeyFile string
	// EtcdCompactionInterval is how often the masters drop the history of that etcd; 0: never.
	EtcdCompactionInterval time.Duration

	// NodeGracePeriod is how long a node may be silent before it counts as not ready, NodeUnknownPeriod before its state is
	// unknown, NodeRemovalPeriod before it is removed.
	NodeGracePeriod, NodeUnknownPeriod, NodeRemovalPeriod time.Duration
	// MetricsWindow is over how long a CPU usage is averaged. CAdvisor, if set, is the URL of a cAdvisor on each node, in
	// which "{node}" stands for the node's address: usage is then read from these, and not from the kubelets.
	MetricsWindow time.Duration
	CAdvisor      string
	// FunctionBase is the archive of the image on which Python functions stand; FunctionAddress where functions are called
	// without asking who calls, host and port; empty: nowhere.
	FunctionBase, FunctionAddress string
	// RegistryAddress is where the cluster's own registry of images has a port of its own, host and port; empty: nowhere.
	RegistryAddress string
	// FunctionRegistry is where images of functions lie, HOST[:PORT][/PATH]; empty: in the cluster's own registry.
	FunctionRegistry string
	// FunctionPort is where masters answer for the Services of functions.
	FunctionPort int
	// Prometheus is the URL of the one that answers for custom and external metrics; empty: nobody does. Its user and password
	// are in it. The files may each be empty: its rules, a bearer token for it, and its CA.
	Prometheus, PrometheusRules, PrometheusTokenFile, PrometheusCAFile string
	// CertificateLifetime is how long the certificates last that this master signs.
	CertificateLifetime time.Duration
	// ClockOffset is how far the daemon's time of day is ahead of the machine's; negative: behind.
	ClockOffset time.Duration

	// Without are the optimisations that are turned off.
	Without []string

	LogLevel  slog.Level
	LogFormat string
}

// The roles there are.
const (
	Master = "master"
	Worker = "worker"
)

// The ways to pods of other nodes.
const (
	VXLAN  = "vxlan"
	Direct = "direct"
)

// The optimisations that can be turned off, to measure what each is worth; the benchmark's part "tricks" does so.
const (
	EarlyElection = "early-election" // a single member of etcd becomes the leader without waiting for its timeout
	GiveBack      = "give-back"      // memory that only the start needed is returned to the system
	Collector     = "collector"      // the garbage collector runs more often when the live heap is large
	Warm          = "warm"           // a sandbox is made in advance for the next pod
)

var optimisations = []string{EarlyElection, GiveBack, Collector, Warm}

// NodeBits is the size of a node's range of pod addresses: a /24.
const NodeBits = 24

// Has reports whether the daemon has a role.
func (c *Config) Has(role string) bool { return slices.Contains(c.Roles, role) }

// APIServiceAddress is the virtual address of the API: the first of ServiceCIDR.
func (c *Config) APIServiceAddress() netip.Addr { return c.ServiceCIDR.Addr().Next() }

// DNSAddress is the address of the cluster's DNS: the tenth of ServiceCIDR.
func (c *Config) DNSAddress() netip.Addr {
	at := c.ServiceCIDR.Addr()
	for range 10 {
		at = at.Next()
	}
	return at
}

// Does reports whether an optimisation is turned on.
func (c *Config) Does(optimisation string) bool { return !slices.Contains(c.Without, optimisation) }

// What Services get when nothing is set; the ranges are Kubernetes'.
const (
	DefaultServiceCIDR = "10.96.0.0/16"
	defaultResolvConf  = "/etc/resolv.conf"
	DefaultNodePorts   = "30000-32767"
)

const defaultDataDir = "/var/lib/minik8s"

// Key is one setting.
type Key struct {
	// Name of the flag, and of the key in the file; the variable is MINIK8S_ and the name in capitals with _.
	Name    string
	Doc     string
	Default string
	// Bool says that the flag may be given without a value.
	Bool bool
	// secret says that no error shows the value.
	secret bool
	// inside says that the setting is one of the etcd inside the daemon, outside one of another etcd. A value that is not the
	// default goes only with that one.
	inside, outside bool
	// shared says which machines of a cluster need the same value.
	shared scope
	// set checks a value and stores it in the configuration.
	set func(c *Config, v string) error
	// get is the effective value, in the form that set accepts.
	get func(c *Config) string
}

// scope is which machines of a cluster need the same value of a setting.
type scope int

const (
	ofMasters scope = 1 + iota
	ofAll
)

// Shared are the settings, by name, of which the cluster has one value for all masters, or, of a machine that is none, those of
// which it has one value for all machines.
func (c *Config) Shared() map[string]string {
	out := map[string]string{}
	for _, k := range Keys {
		if k.shared == ofAll || k.shared == ofMasters && c.Has(Master) {
			out[k.Name] = k.get(c)
		}
	}
	return out
}

// Env is the name of the key's variable.
func (k Key) Env() string {
	return "MINIK8S_" + strings.ToUpper(strings.ReplaceAll(k.Name, "-", "_"))
}

// Keys is every setting, in the order in which they are shown.
var Keys = []Key{
	{Name: "role", Default: "master,worker", Doc: "what this daemon does: master, worker, or both",
		set: setRoles, get: func(c *Config) string { return strings.Join(c.Roles, ",") }},
	{Name: "data-dir", Default: defaultDataDir, Doc: "the directory of all state",
		set: func(c *Config, v string) (err error) {
			if v == "" {
				return fmt.Errorf("a directory is needed")
			}
			c.DataDir, err = filepath.Abs(v)
			return err
		}, get: func(c *Config) string { return c.DataDir }},
	{Name: "node-name", Default: "", Doc: "this machine's name in the cluster; empty: its host name",
		set: setNodeName, get: func(c *Config) string { return c.NodeName }},
	{Name: "node-config", Default: "", Doc: "a Node manifest with this machine's name, labels and podCIDR; also the variable NODE_CONFIG",
		set: text(func(c *Config) *string { return &c.NodeConfig }), get: func(c *Config) string { return c.NodeConfig }},
	{Name: "node-ip", Default: "", Doc: "this machine's address; empty: that of the link with the default route",
		set: func(c *Config, v string) (err error) {
			if v != "" {
				c.NodeIP, err = netip.ParseAddr(v)
			}
			return err
		}, get: func(c *Config) string {
			if !c.NodeIP.IsValid() {
				return ""
			}
			return c.NodeIP.String()
		}},
	{Name: "server", Default: "", Doc: "the API of a master, https://HOST:6443, whose cluster this machine joins; needed the first time, then a last resort beside the masters that the cluster names",
		set: func(c *Config, v string) error {
			c.Server = strings.TrimRight(v, "/")
			if v == "" {
				return nil
			}
			u, err := url.Parse(v)
			if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.Path != "" && u.Path != "/" {
				return fmt.Errorf("expected a URL like https://10.0.0.1:6443")
			}
			if u.Port() == "" {
				c.Server = "https://" + net.JoinHostPort(u.Hostname(), "6443")
			}
			return nil
		}, get: func(c *Config) string { return c.Server }},
	{Name: "token", Default: "", Doc: "the join token, from \"minik8sd ctl token create\" on a master; needed once (it is not printed here)",
		set: text(func(c *Config) *string { return &c.Token }), get: func(*Config) string { return "" }, secret: true},
	{Name: "api-address", Default: "", Doc: "the address that the API listens on; empty: all of this machine's",
		set: func(c *Config, v string) error {
			if v != "" {
				if _, err := netip.ParseAddr(v); err != nil {
					return err
				}
			}
			c.APIAddress = v
			return nil
		}, get: func(c *Config) string { return c.APIAddress }},
	{Name: "api-port", Default: "6443", Doc: "the port of the API (HTTPS); on a worker alone, that on its loopback address behind which all masters are",
		set: intBetween(1, 65535, func(c *Config) *int { return &c.APIPort }), get: func(c *Config) string { return fmt.Sprint(c.APIPort) }},
	{Name: "kubelet-address", Default: "", Doc: "the address that the kubelet's server listens on; empty: that of the API",
		set: func(c *Config, v string) error {
			if v != "" {
				if _, err := netip.ParseAddr(v); err != nil {
					return err
				}
			}
			c.KubeletAddress = v
			return nil
		}, get: func(c *Config) string { return c.KubeletAddress }},
	{Name: "kubelet-port", Default: "10250", Doc: "the port of the kubelet's server (HTTPS), for logs, exec and so on; 0: any that is free",
		set: intBetween(0, 65535, func(c *Config) *int { return &c.KubeletPort }), get: func(c *Config) string { return fmt.Sprint(c.KubeletPort) }},
	{Name: "pod-network", shared: ofAll, Default: VXLAN, Doc: "how pods of other nodes are reached, the same on all nodes: vxlan, or direct, by plain routes to nodes on the same link (some clouds drop these packets) and VXLAN to the others",
		set: func(c *Config, v string) error {
			if v != VXLAN && v != Direct {
				return fmt.Errorf("expected %s or %s", VXLAN, Direct)
			}
			c.PodNetwork = v
			return nil
		}, get: func(c *Config) string { return c.PodNetwork }},
	{Name: "vxlan-port", shared: ofAll, Default: "8472", Doc: "the UDP port of VXLAN, the same on all nodes; another cluster or program on this machine needs one of its own",
		set: intBetween(1, 65535, func(c *Config) *int { return &c.VXLANPort }), get: func(c *Config) string { return fmt.Sprint(c.VXLANPort) }},
	{Name: "cluster-cidr", shared: ofMasters, Default: "10.244.0.0/16", Doc: "the addresses of all pods, the same on all masters; each node gets a /24 of it",
		set: ipv4Range(8, NodeBits, func(c *Config) *netip.Prefix { return &c.ClusterCIDR }), get: func(c *Config) string { return c.ClusterCIDR.String() }},
	{Name: "pod-cidr", Default: "", Doc: "the addresses of this node's pods; empty: a free range of the cluster's",
		set: func(c *Config, v string) error {
			if v == "" {
				return nil
			}
			return ipv4Range(8, 29, func(c *Config) *netip.Prefix { return &c.PodCIDR })(c, v)
		}, get: func(c *Config) string {
			if !c.PodCIDR.IsValid() {
				return ""
			}
			return c.PodCIDR.String()
		}},
	{Name: "service-cidr", shared: ofMasters, Default: DefaultServiceCIDR, Doc: "the addresses that Services get, the same on all masters: the first is that of the API, the tenth that of the DNS; a Service may ask for any other address, too",
		set: setServiceCIDR, get: func(c *Config) string { return c.ServiceCIDR.String() }},
	{Name: "service-node-port-range", shared: ofMasters, Default: DefaultNodePorts, Doc: "the ports that nodes have for Services of the types NodePort and LoadBalancer, the same on all masters",
		set: func(c *Config, v string) (err error) { c.NodePorts, err = ParsePortRange(v); return err },
		get: func(c *Config) string { return c.NodePorts.String() }},
	{Name: "lb-pool", shared: ofMasters, Default: "", Doc: "addresses for Services of the type LoadBalancer, the same on all masters: ranges as 10.9.0.10-10.9.0.20 or 10.9.0.16/28, separated by commas, which no machine has and for which one node at a time answers on its network; empty: they have the nodes' own addresses",
		set: func(c *Config, v string) (err error) { c.LBPool, err = ParseAddressPool(v); return err },
		get: func(c *Config) string { return c.LBPool.String() }},
	{Name: "cluster-domain", shared: ofAll, Default: "cluster.local", Doc: "the domain of the cluster's DNS names, the same on all machines",
		set: func(c *Config, v string) error {
			c.ClusterDomain = v
			return first(validation.IsDNS1123Subdomain(v))
		}, get: func(c *Config) string { return c.ClusterDomain }},
	{Name: "cluster-dns", Default: "", Doc: "DNS servers of pods with dnsPolicy ClusterFirst instead of the cluster's own, separated by commas",
		set: func(c *Config, v string) error {
			c.ClusterDNS = list(v)
			for _, a := range c.ClusterDNS {
				if _, err := netip.ParseAddr(a); err != nil {
					return err
				}
			}
			return nil
		}, get: func(c *Config) string { return strings.Join(c.ClusterDNS, ",") }},
	{Name: "host-dns", Default: "false", Bool: true, Doc: "have the programs of this machine ask the cluster's DNS, too, by systemd-resolved where they ask that, else by a line in --resolv-conf; it is undone when the daemon ends",
		set: boolean(func(c *Config) *bool { return &c.HostDNS }), get: func(c *Config) string { return fmt.Sprint(c.HostDNS) }},
	{Name: "resolv-conf", Default: defaultResolvConf, Doc: "the file that names this machine's DNS servers, which the cluster's DNS asks for all other names",
		set: text(func(c *Config) *string { return &c.ResolvConf }), get: func(c *Config) string { return c.ResolvConf }},
	{Name: "containerd", Default: "", Doc: "the socket of a containerd that is already running; empty: the one inside this daemon",
		set: text(func(c *Config) *string { return &c.Containerd }), get: func(c *Config) string { return c.Containerd }},
	{Name: "cgroup-root", Default: "", Doc: "the cgroup below which pods run; empty: /minik8s, or for another data-dir one of its own",
		set: func(c *Config, v string) error {
			if v == "" {
				v = cgroupOf(c.DataDir)
			}
			if !strings.HasPrefix(v, "/") || v == "/" {
				return fmt.Errorf("expected a path below the root, like /minik8s")
			}
			c.CgroupRoot = filepath.Clean(v)
			return nil
		}, get: func(c *Config) string { return c.CgroupRoot }},
	{Name: "max-pods", Default: "110", Doc: "how many pods this node takes",
		set: intBetween(1, 10000, func(c *Config) *int { return &c.MaxPods }), get: func(c *Config) string { return fmt.Sprint(c.MaxPods) }},
	{Name: "pod-pids-limit", Default: "4096", Doc: "how many processes and threads a pod may have; 0: as many as the machine",
		set: intBetween(0, 4<<20, func(c *Config) *int { return &c.PodPidsLimit }), get: func(c *Config) string { return fmt.Sprint(c.PodPidsLimit) }},
	{Name: "node-labels", Default: "", Doc: "labels of this node: key=value,key=value",
		set: setLabels, get: func(c *Config) string { return joinLabels(c.NodeLabels) }},
	{Name: "random-host-ports", Default: "false", Bool: true, Doc: "give every container port a free port of this machine",
		set: boolean(func(c *Config) *bool { return &c.RandomHostPorts }), get: func(c *Config) string { return fmt.Sprint(c.RandomHostPorts) }},
	{Name: "insecure-registries", Default: "", Doc: "registries to speak plain HTTP with, HOST:PORT separated by commas; those on loopback always are",
		set: func(c *Config, v string) error { c.InsecureRegistries = list(v); return nil },
		get: func(c *Config) string { return strings.Join(c.InsecureRegistries, ",") }},
	{Name: "registry-authfile", Default: "", Doc: "the file with this machine's logins to registries, in the form of docker's config.json: it pulls images with them that a pod's own imagePullSecrets do not open, for whichever pod, and as a master pushes those of functions (function-registry); read again each time",
		set: file(func(c *Config) *string { return &c.RegistryAuthFile }), get: func(c *Config) string { return c.RegistryAuthFile }},
	{Name: "container-log-size", Default: "10Mi", Doc: "the size at which a container's log file is rotated",
		set: bytesBetween(4<<10, 1<<40, func(c *Config) *int64 { return &c.ContainerLogSize }),
		get: func(c *Config) string { return size(c.ContainerLogSize) }},
	{Name: "container-log-files", Default: "5", Doc: "how many log files a container keeps",
		set: intBetween(2, 1000, func(c *Config) *int { return &c.ContainerLogFiles }), get: func(c *Config) string { return fmt.Sprint(c.ContainerLogFiles) }},
	{Name: "heartbeat-interval", Default: "10s", Doc: "how often this node says that it is alive",
		set: duration(time.Second, 30*time.Second, func(c *Config) *time.Duration { return &c.HeartbeatInterval }),
		get: func(c *Config) string { return c.HeartbeatInterval.String() }},
	{Name: "shutdown-grace-period", Default: "40s", Doc: "how long a shutdown of this machine (by systemd) waits for its pods to end, each within its own grace period; 0: it does not wait, and nobody ends them",
		set: duration(0, 24*time.Hour, func(c *Config) *time.Duration { return &c.ShutdownGracePeriod }),
		get: func(c *Config) string { return c.ShutdownGracePeriod.String() }},
	{Name: "shutdown-grace-period-critical-pods", Default: "", Doc: "the last part of shutdown-grace-period, in which critical pods end (of the priority classes system-cluster-critical and system-node-critical); empty: a quarter",
		set: func(c *Config, v string) error {
			if v == "" {
				c.ShutdownGracePeriodCriticalPods = c.ShutdownGracePeriod / 4
				return nil
			}
			return duration(0, 24*time.Hour, func(c *Config) *time.Duration { return &c.ShutdownGracePeriodCriticalPods })(c, v)
		}, get: func(c *Config) string { return c.ShutdownGracePeriodCriticalPods.String() }},
	{Name: "etcd-quota", inside: true, Default: "2Gi", Doc: "how large the store may grow",
		set: bytesBetween(16<<20, 64<<30, func(c *Config) *int64 { return &c.EtcdQuota }),
		get: func(c *Config) string { return size(c.EtcdQuota) }},
	{Name: "snapshot-interval", inside: true, Default: "12h", Doc: "how often each master saves a copy of the store, in the directory snapshots of its data directory; 0: never",
		set: duration(0, 10*365*24*time.Hour, func(c *Config) *time.Duration { return &c.SnapshotInterval }),
		get: func(c *Config) string { return c.SnapshotInterval.String() }},
	{Name: "snapshot-keep", inside: true, Default: "5", Doc: "how many of these copies are kept",
		set: intBetween(1, 10000, func(c *Config) *int { return &c.SnapshotKeep }), get: func(c *Config) string { return fmt.Sprint(c.SnapshotKeep) }},
	{Name: "etcd-port", inside: true, Default: "2380", Doc: "the port of this master's etcd for other masters; it is opened when there are some",
		set: intBetween(1, 65535, func(c *Config) *int { return &c.EtcdPort }), get: func(c *Config) string { return fmt.Sprint(c.EtcdPort) }},
	{Name: "etcd-servers", Default: "", Doc: "an etcd that others run keeps the cluster instead of the one inside, on masters: the URLs of its members, https://HOST:2379 separated by commas",
		set: setServers, get: func(c *Config) string { return strings.Join(c.EtcdServers, ",") }, secret: true},
	{Name: "etcd-prefix", outside: true, Default: "/minik8s", Doc: "where this cluster's keys are in that etcd, which several clusters may share",
		set: setPrefix, get: func(c *Config) string { return c.EtcdPrefix }},
	{Name: "etcd-cafile", outside: true, Default: "", Doc: "the file with the CA of that etcd's certificates (PEM); empty: the system's authorities",
		set: file(func(c *Config) *string { return &c.EtcdCAFile }), get: func(c *Config) string { return c.EtcdCAFile }},
	{Name: "etcd-certfile", outside: true, Default: "", Doc: "the file with the certificate by which that etcd knows this machine (PEM); read again when it changes",
		set: file(func(c *Config) *string { return &c.EtcdCertFile }), get: func(c *Config) string { return c.EtcdCertFile }},
	{Name: "etcd-keyfile", outside: true, Default: "", Doc: "the file with the key of that certificate (PEM)",
		set: file(func(c *Config) *string { return &c.EtcdKeyFile }), get: func(c *Config) string { return c.EtcdKeyFile }},
	{Name: "etcd-compaction-interval", outside: true, Default: "5m", Doc: "how often the masters drop the history of that etcd, for all its users, which is at least as old; 0: others do it",
		set: durationOrNone(10*time.Second, 1000*time.Hour, func(c *Config) *time.Duration { return &c.EtcdCompactionInterval }),
		get: func(c *Config) string { return c.EtcdCompactionInterval.String() }},
	{Name: "node-grace-period", Default: "40s", Doc: "how long a node may be silent before it counts as not ready, on masters; several heartbeats",
		set: duration(2*time.Second, time.Hour, func(c *Config) *time.Duration { return &c.NodeGracePeriod }),
		get: func(c *Config) string { return c.NodeGracePeriod.String() }},
	{Name: "node-unknown-period", Default: "0s", Doc: "how long a node may be silent before its state counts as unknown, on masters; 0: three times node-grace-period",
		set: duration(0, 3*time.Hour, func(c *Config) *time.Duration { return &c.NodeUnknownPeriod }),
		get: func(c *Config) string { return c.NodeUnknownPeriod.String() }},
	{Name: "node-removal-period", Default: "4m", Doc: "how long a node may be silent before its Node is removed, and its pods with it, and a master before another one votes in its place; 0: never",
		set: duration(0, 1000*time.Hour, func(c *Config) *time.Duration { return &c.NodeRemovalPeriod }),
		get: func(c *Config) string { return c.NodeRemovalPeriod.String() }},
	{Name: "metrics-window", Default: "15s", Doc: "over how long a CPU usage is averaged, on masters; it cannot be known more often than every second",
		set: duration(time.Second, 2*time.Minute, func(c *Config) *time.Duration { return &c.MetricsWindow }),
		get: func(c *Config) string { return c.MetricsWindow.String() }},
	{Name: "cadvisor", Default: "", Doc: "read what nodes use from a cAdvisor on each, on masters: its URL, with {node} for the node's address, as http://{node}:8090",
		set: func(c *Config, v string) error {
			u, err := url.Parse(strings.ReplaceAll(v, "{node}", "192.0.2.1"))
			if v != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "") {
				return fmt.Errorf("expected the URL of a cAdvisor on each node, as http://{node}:8090")
			}
			c.CAdvisor = v
			return nil
		}, get: func(c *Config) string { return c.CAdvisor }},
	{Name: "function-base", Default: "", Doc: "the image on which Python functions stand, on masters, the same on all: an OCI archive (make images makes build/functions/python.tar); empty: only functions with images of their own",
		set: file(func(c *Config) *string { return &c.FunctionBase }), get: func(c *Config) string { return c.FunctionBase }},
	{Name: "function-address", Default: "127.0.0.1:8081", Doc: "where functions are called by POST /NAME, without asking who calls, on masters; off: nowhere",
		set: addressOrOff("127.0.0.1:8081", func(c *Config) *string { return &c.FunctionAddress }), get: func(c *Config) string { return c.FunctionAddress }},
	{Name: "registry-address", Default: "off", Doc: "a port for the cluster's own registry of images alone, on masters, as 0.0.0.0:5000: what it also is below /v2/ of the API, with the same certificates and rights; off: none",
		set: addressOrOff("0.0.0.0:5000", func(c *Config) *string { return &c.RegistryAddress }), get: func(c *Config) string { return c.RegistryAddress }},
	{Name: "function-registry", shared: ofMasters, Default: "", Doc: "another registry for the images of functions, HOST[:PORT][/PATH], the same on all masters: they push there with the logins of registry-authfile, and nodes pull there as from any registry; the path is this cluster's alone; empty: the cluster's own",
		set: setFunctionRegistry, get: func(c *Config) string { return c.FunctionRegistry }, secret: true},
	{Name: "function-port", shared: ofMasters, Default: "8082", Doc: "the port on which masters answer for functions that have an address of their own, the same on all masters; it is open while there is such a function, to the cluster's pods and nodes; 0: none gets an address",
		set: intBetween(0, 65535, func(c *Config) *int { return &c.FunctionPort }), get: func(c *Config) string { return fmt.Sprint(c.FunctionPort) }},
	{Name: "prometheus", Default: "", Doc: "the Prometheus that answers for the metrics of autoscalers beyond cpu and memory (custom.metrics.k8s.io, external.metrics.k8s.io), on masters: its URL, http://127.0.0.1:9090; empty: these are not served",
		set: setPrometheus, get: func(c *Config) string { return redacted(c.Prometheus) }, secret: true},
	{Name: "prometheus-rules", Default: "", Doc: "the file that says which of its series are which metrics, in the form of prometheus-adapter; empty: any series with labels for namespace and pod, service, node, deployment or ingress, by its name",
		set: file(func(c *Config) *string { return &c.PrometheusRules }), get: func(c *Config) string { return c.PrometheusRules }},
	{Name: "prometheus-token-file", Default: "", Doc: "the file with the bearer token for it; read again for each question",
		set: file(func(c *Config) *string { return &c.PrometheusTokenFile }), get: func(c *Config) string { return c.PrometheusTokenFile }},
	{Name: "prometheus-cafile", Default: "", Doc: "the file with the CA of its certificate (PEM); empty: the system's authorities",
		set: file(func(c *Config) *string { return &c.PrometheusCAFile }), get: func(c *Config) string { return c.PrometheusCAFile }},
	{Name: "certificate-lifetime", Default: "8760h", Doc: "how long certificates last that this master signs; they are renewed when a third is left",
		set: duration(10*time.Second, 10*365*24*time.Hour, func(c *Config) *time.Duration { return &c.CertificateLifetime }),
		get: func(c *Config) string { return c.CertificateLifetime.String() }},
	{Name: "clock-offset", Default: "0s", Doc: "to try what a wrong clock does: how far the daemon's time of day is ahead of the machine's, -2h: behind",
		set: duration(-100*365*24*time.Hour, 100*365*24*time.Hour, func(c *Config) *time.Duration { return &c.ClockOffset }),
		get: func(c *Config) string { return c.ClockOffset.String() }},
	{Name: "without", Default: "", Doc: "optimisations to leave out, to see what each is worth: " + strings.Join(optimisations, ", "),
		set: func(c *Config, v string) error {
			c.Without = list(v)
			for _, o := range c.Without {
				if !slices.Contains(optimisations, o) {
					return fmt.Errorf("%q is none of %s", o, strings.Join(optimisations, ", "))
				}
			}
			return nil
		}, get: func(c *Config) string { return strings.Join(c.Without, ",") }},
	{Name: "log-level", Default: "warn", Doc: "what the daemon logs: debug, info, warn or error",
		set: func(c *Config, v string) error {
			if err := c.LogLevel.UnmarshalText([]byte(v)); err != nil {
				return fmt.Errorf("expected debug, info, warn or error")
			}
			return nil
		}, get: func(c *Config) string { return strings.ToLower(c.LogLevel.String()) }},
	{Name: "log-format", Default: "text", Doc: "the form of the log: text or json",
		set: func(c *Config, v string) error {
			if v != "text" && v != "json" {
				return fmt.Errorf("expected text or json")
			}
			c.LogFormat = v
			return nil
		}, get: func(c *Config) string { return c.LogFormat }},
}

// cgroupOf is the default cgroup for a data directory. A daemon kills unknown processes in its cgroup, so two daemons
// on a machine must not share one.
func cgroupOf(dataDir string) string {
	if dataDir == defaultDataDir {
		return "/minik8s"
	}
	return fmt.Sprintf("/minik8s-%x", sha256.Sum256([]byte(realPath(dataDir))))[:len("/minik8s-")+8]
}

// realPath is a path without symbolic links, the same whether its last parts exist or not.
func realPath(path string) string {
	for rest := ""; ; path = filepath.Dir(path) {
		if found, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
			return filepath.Join(found, rest)
		}
		rest = filepath.Join(filepath.Base(path), rest)
	}
}

func size(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }

// hostName is the machine's name, as a valid name of a Node.
func hostName() (string, error) {
	h, err := os.Hostname()
	if err != nil {
		return "", err
	}
	h = strings.ToLower(h)
	if msg := validation.IsDNS1123Subdomain(h); len(msg) > 0 {
		return "", fmt.Errorf("this machine's name %q cannot be a node's: give one with --node-name", h)
	}
	return h, nil
}
