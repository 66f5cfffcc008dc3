package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

func first(msgs []string) error {
	if len(msgs) == 0 {
		return nil
	}
	return errors.New(msgs[0])
}

// list splits at commas; empty parts do not count.
func list(v string) []string {
	var out []string
	for p := range strings.SplitSeq(v, ",") {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}

func text(at func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error { *at(c) = v; return nil }
}

func boolean(at func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return errors.New("expected true or false")
		}
		*at(c) = b
		return nil
	}
}

func intBetween(lo, hi int, at func(*Config) *int) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < lo || n > hi {
			return fmt.Errorf("expected a number from %d to %d", lo, hi)
		}
		*at(c) = n
		return nil
	}
}

func duration(lo, hi time.Duration, at func(*Config) *time.Duration) func(*Config, string) error {
	return func(c *Config, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil {
			return errors.New("expected a time, like 10s or 4m")
		}
		if d < lo || d > hi {
			return fmt.Errorf("expected between %s and %s", lo, hi)
		}
		*at(c) = d
		return nil
	}
}

// durationOrNone is duration, or 0.
func durationOrNone(lo, hi time.Duration, at func(*Config) *time.Duration) func(*Config, string) error {
	set := duration(lo, hi, at)
	return func(c *Config, v string) error {
		if d, err := time.ParseDuration(v); err == nil && d == 0 {
			*at(c) = 0
			return nil
		}
		if err := set(c, v); err != nil {
			return fmt.Errorf("%w, or 0", err)
		}
		return nil
	}
}

func bytesBetween(lo, hi int64, at func(*Config) *int64) func(*Config, string) error {
	return func(c *Config, v string) error {
		q, err := resource.ParseQuantity(v)
		if err != nil {
			return errors.New("expected a number of bytes, like 512Mi")
		}
		if q.Value() < lo || q.Value() > hi {
			return fmt.Errorf("expected between %s and %s", size(lo), size(hi))
		}
		*at(c) = q.Value()
		return nil
	}
}

func setRoles(c *Config, v string) error {
	c.Roles = nil
	for _, r := range list(v) {
		if r != Master && r != Worker {
			return fmt.Errorf("%q is no role: expected master, worker, or both separated by a comma", r)
		}
		if !slices.Contains(c.Roles, r) {
			c.Roles = append(c.Roles, r)
		}
	}
	if len(c.Roles) == 0 {
		return errors.New("expected master, worker, or both separated by a comma")
	}
	return nil
}

func setNodeName(c *Config, v string) (err error) {
	if v == "" {
		c.NodeName, err = hostName()
		return err
	}
	c.NodeName = v
	return first(validation.IsDNS1123Subdomain(v))
}

func setLabels(c *Config, v string) error {
	c.NodeLabels = map[string]string{}
	for _, kv := range list(v) {
		k, val, ok := strings.Cut(kv, "=")
		if !ok {
			return fmt.Errorf("%q: expected key=value", kv)
		}
		if err := first(append(validation.IsQualifiedName(k), validation.IsValidLabelValue(val)...)); err != nil {
			return fmt.Errorf("%q: %w", kv, err)
		}
		c.NodeLabels[k] = val
	}
	return nil
}

func joinLabels(m map[string]string) string {
	var out []string
	for k, v := range m {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// ipv4Range accepts an IPv4 range whose prefix has from lo to hi bits.
func ipv4Range(lo, hi int, at func(*Config) *netip.Prefix) func(*Config, string) error {
	return func(c *Config, v string) error {
		p, err := netip.ParsePrefix(v)
		if err != nil {
			return err
		}
		if !p.Addr().Is4() || p.Bits() < lo || p.Bits() > hi {
			return fmt.Errorf("expected an IPv4 range between /%d and /%d", lo, hi)
		}
		*at(c) = p.Masked()
		return nil
	}
}

// PortRange is the ports from First to Last.
type PortRange struct{ First, Last int }

// Contains reports whether a port is in the range.
func (r PortRange) Contains(port int) bool { return r.First <= port && port <= r.Last }

// String is "30000-32767".
func (r PortRange) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// ParsePortRange reads what String writes.
func ParsePortRange(v string) (PortRange, error) {
	first, last, ok := strings.Cut(v, "-")
	a, err := strconv.Atoi(strings.TrimSpace(first))
	b, err2 := strconv.Atoi(strings.TrimSpace(last))
	if !ok || err != nil || err2 != nil || a < 1 || b > 65535 || a > b {
		return PortRange{}, errors.New("expected two ports like 30000-32767, the first not above the second, from 1 to 65535")
	}
	return PortRange{a, b}, nil
}

// setServiceCIDR accepts a range of addresses that can be Services': not those that mean the machine itself, its links or
// groups of machines.
func setServiceCIDR(c *Config, v string) error {
	if err := ipv4Range(8, 28, func(c *Config) *netip.Prefix { return &c.ServiceCIDR })(c, v); err != nil {
		return err
	}
	for _, not := range []string{"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3"} {
		if netip.MustParsePrefix(not).Overlaps(c.ServiceCIDR) {
			return fmt.Errorf("it overlaps %s, whose addresses are no single machine's on the network: choose another, like %s", not, DefaultServiceCIDR)
		}
	}
	return nil
}

// file accepts the path of a file.
func file(at func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) (err error) {
		if *at(c) = v; v != "" {
			*at(c), err = filepath.Abs(v)
		}
		return err
	}
}

// setServers accepts the URLs of an etcd. They hold no secret then, and may be logged.
func setServers(c *Config, v string) error {
	c.EtcdServers = nil
	for _, s := range list(v) {
		u, err := url.Parse(s)
		switch {
		case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
			return errors.New("expected URLs like https://10.0.0.1:2379, separated by commas")
		case u.User != nil:
			return errors.New("a URL has a user or password: etcd knows this machine by --etcd-certfile alone")
		case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
			return errors.New("a URL has a path or query: expected URLs like https://10.0.0.1:2379, separated by commas")
		case len(c.EtcdServers) > 0 && !strings.HasPrefix(c.EtcdServers[0], u.Scheme+":"):
			return errors.New("some URLs have https and some http: expected the same for all")
		}
		port := u.Port()
		if port == "" {
			port = "2379"
		}
		if s = u.Scheme + "://" + net.JoinHostPort(u.Hostname(), port); !slices.Contains(c.EtcdServers, s) {
			c.EtcdServers = append(c.EtcdServers, s)
		}
	}
	return nil
}

// addressOrOff accepts an address and a port, as the example, or off.
func addressOrOff(example string, at func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error {
		if v == "off" || v == "" {
			*at(c) = ""
			return nil
		}
		address, err := netip.ParseAddrPort(v)
		if err != nil || address.Port() == 0 {
			return fmt.Errorf("expected an address and a port, as %s, or off", example)
		}
		*at(c) = address.String()
		return nil
	}
}

// setFunctionRegistry accepts the name of a registry, with a path or without, below which images of functions can have names.
func setFunctionRegistry(c *Config, v string) error {
	c.FunctionRegistry = v
	if v == "" {
		return nil
	}
	if strings.Contains(v, "://") || strings.Contains(v, "@") {
		return errors.New("expected HOST[:PORT][/PATH], without a scheme and without a login, which is one of --registry-authfile; for plain HTTP there is --insecure-registries")
	}
	// The longest names of a namespace and a function.
	if _, err := reference.ParseNamed(v + "/functions/" + strings.Repeat("n", 63) + "/" + strings.Repeat("f", 63)); err != nil {
		return errors.New("expected HOST[:PORT][/PATH], as registry.example.org:5000/cluster1: HOST is localhost or has a dot or a port, PATH has small letters and is at most 100 long")
	}
	return nil
}

// setPrometheus accepts the URL of a Prometheus, which may have a path, a user and a password.
func setPrometheus(c *Config, v string) error {
	u, err := url.Parse(v)
	if v != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "") {
		return errors.New("expected the URL of a Prometheus, like http://127.0.0.1:9090 or https://user:password@metrics.example.org/prometheus")
	}
	c.Prometheus = v
	return nil
}

// redacted is a URL without the user and password, one of which may be a token.
func redacted(v string) string {
	u, err := url.Parse(v)
	if err != nil {
		return ""
	}
	if u.User != nil {
		u.User = url.User("xxxxx")
	}
	return u.String()
}

// checkPrometheus finds settings of a Prometheus that is not there, and two ways to be known by it.
func (c *Config) checkPrometheus() error {
	for name, v := range map[string]string{"prometheus-rules": c.PrometheusRules, "prometheus-token-file": c.PrometheusTokenFile, "prometheus-cafile": c.PrometheusCAFile} {
		if v != "" && c.Prometheus == "" {
			return fmt.Errorf("%s: it is about a Prometheus: give --prometheus, too, or remove it", name)
		}
	}
	if c.Prometheus == "" {
		return nil
	}
	u, err := url.Parse(c.Prometheus)
	switch {
	case err != nil:
		return errors.New("prometheus: expected a URL")
	case !c.Has(Master):
		return errors.New("prometheus: only masters ask it: give it to them, and remove it here")
	case u.User != nil && c.PrometheusTokenFile != "":
		return errors.New("prometheus-token-file: the URL of prometheus has a user, too: give one of them")
	case u.Scheme == "http" && c.PrometheusCAFile != "":
		return errors.New("prometheus-cafile: the URL of prometheus has http, by which certificates are not used: give https, or remove it")
	}
	return nil
}

func setPrefix(c *Config, v string) error {
	c.EtcdPrefix = v
	if v == "/" || !strings.HasPrefix(v, "/") || path.Clean(v) != v {
		return errors.New("expected a path below the root, like /minik8s")
	}
	return nil
}

// check finds settings that do not go together.
func (c *Config) check() error {
	switch {
	case c.Has(Master) && c.PodCIDR.IsValid() && (c.PodCIDR.Bits() < c.ClusterCIDR.Bits() || !c.ClusterCIDR.Contains(c.PodCIDR.Addr())):
		return fmt.Errorf("pod-cidr: %s is not within the cluster's range %s: choose another, or give --cluster-cidr too", c.PodCIDR, c.ClusterCIDR)
	case c.Has(Master) && c.ServiceCIDR.Overlaps(c.ClusterCIDR):
		return fmt.Errorf("service-cidr: %s overlaps cluster-cidr, %s: Services and pods need addresses of their own: choose another range for one of them", c.ServiceCIDR, c.ClusterCIDR)
	case c.Has(Master) && c.NodeIP.IsValid() && c.ServiceCIDR.Contains(c.NodeIP):
		return fmt.Errorf("service-cidr: %s has the address of this machine, %s: choose a range that no machine is in", c.ServiceCIDR, c.NodeIP)
	case c.Has(Master) && c.NodePorts.Contains(c.APIPort):
		return fmt.Errorf("service-node-port-range: %s has the port of the API, %d: choose other ports, or another --api-port", c.NodePorts, c.APIPort)
	case c.Has(Worker) && c.Has(Master) && c.NodePorts.Contains(c.KubeletPort):
		return fmt.Errorf("service-node-port-range: %s has the port of the kubelet, %d: choose other ports, or another --kubelet-port", c.NodePorts, c.KubeletPort)
	case c.Has(Master) && c.NodePorts.Contains(c.EtcdPort):
		return fmt.Errorf("service-node-port-range: %s has the port of etcd, %d: choose other ports, or another --etcd-port", c.NodePorts, c.EtcdPort)
	case c.Has(Master) && c.NodePorts.Contains(c.VXLANPort):
		return fmt.Errorf("service-node-port-range: %s has the port of the pods' network, %d: choose other ports, or another --vxlan-port", c.NodePorts, c.VXLANPort)
	case c.HostDNS && !c.Has(Worker):
		return errors.New("host-dns: only a worker answers DNS questions: give this machine the role too, or remove it")
	case c.HostDNS && !path.IsAbs(c.ResolvConf):
		return fmt.Errorf("resolv-conf: %q is not an absolute path: give one, like %s", c.ResolvConf, defaultResolvConf)
	case c.NodeRemovalPeriod != 0 && c.NodeRemovalPeriod < c.NodeGracePeriod:
		return fmt.Errorf("node-removal-period: %s is less than node-grace-period, %s: a node is lost before it is removed", c.NodeRemovalPeriod, c.NodeGracePeriod)
	case c.ShutdownGracePeriod != 0 && c.ShutdownGracePeriodCriticalPods > c.ShutdownGracePeriod:
		return fmt.Errorf("shutdown-grace-period-critical-pods: %s is more than shutdown-grace-period, %s, of which it is a part: set a shorter one", c.ShutdownGracePeriodCriticalPods, c.ShutdownGracePeriod)
	}
	return cmp.Or(c.checkPrometheus(), c.checkPool(), c.checkEtcd())
}

// checkEtcd finds settings of the etcd that is not used, and files that lack the other.
func (c *Config) checkEtcd() error {
	external := len(c.EtcdServers) > 0
	for _, k := range Keys {
		switch {
		case !k.inside && !k.outside || k.isDefault(c):
		case external && k.inside:
			return fmt.Errorf("%s: it is a setting of the etcd inside the daemon, and with --etcd-servers another one is used: remove it; that etcd's own settings, backups and members are its operator's", k.Name)
		case !external && k.outside:
			return fmt.Errorf("%s: it is about an etcd that others run: give --etcd-servers, too, or remove it", k.Name)
		}
	}
	if !external {
		return nil
	}
	files := c.EtcdCAFile + c.EtcdCertFile + c.EtcdKeyFile
	switch {
	case !c.Has(Master):
		return errors.New("etcd-servers: only masters use etcd: give it to them, and remove it here")
	case strings.HasPrefix(c.EtcdServers[0], "http:") && files != "":
		return errors.New("etcd-servers: the URLs have http, by which certificates are not used: give https, or remove --etcd-cafile, --etcd-certfile and --etcd-keyfile")
	case (c.EtcdCertFile == "") != (c.EtcdKeyFile == ""):
		return errors.New("etcd-certfile, etcd-keyfile: one goes only with the other")
	}
	return nil
}

// isDefault reports whether a setting has its default value.
func (k Key) isDefault(c *Config) bool {
	var d Config
	return k.set(&d, k.Default) == nil && k.get(&d) == k.get(c)
}
