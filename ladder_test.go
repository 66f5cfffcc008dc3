package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// floors is the ladder: a package may import those of lower floors only, and on floor 4 its own
// subpackages. The longest prefix counts.
var floors = map[string]int{
	"":                            6,
	"roles":                       5,
	"internal/bench":              5, // drives the built daemon from outside, with its rooms
	"internal/bench/bed":          1, // what bench's rooms share; knows the daemon as a client does
	"internal/hosts":              5, // as bench, on several hosts
	"internal/apiserver":          4,
	"internal/scheduler":          4,
	"internal/controller":         4,
	"internal/kubelet":            4,
	"internal/ctl":                4,
	"internal/identity":           4, // a worker's certificates; only roles makes one
	"internal/network":            4, // the pods' network; only roles builds it, and hands it to the runtime as an interface
	"internal/network/overlay":    1, // the way to other nodes' pods; knows no Node, and no pod of this one
	"internal/network/hostfilter": 1, // filters of others on the host; is told what has to pass
	"internal/network/hostports":  1, // what a pod's host ports need of table and loopback
	"internal/network/ipam":       1, // addresses of a range
	"internal/network/host":       1, // the host's links, routes and settings; decides nothing
	"internal/masters":            4, // where the masters are, for a worker; roles brings it and the balancer together
	"internal/client":             3,
	"internal/client/local":       3,
	"internal/client/fallback":    3,
	"internal/client/remote":      3,
	"internal/informer":           3,
	"internal/events":             3,
	"internal/registry":           2,
	"internal/store":              2,
	"internal/supervise":          1,
	"internal/certs":              1,
	"internal/tokens":             1,
	"internal/bootstrap":          1, // join tokens: ctl makes them, registry checks them, a machine that joins shows them
	"internal/membership":         1, // how masters join: a machine asks, apiserver answers, ctl shows
	"internal/machine":            1,
	"internal/nft":                1, // the kernel's packet filter; knows no pod
	"internal/proxy":              4, // the data path of Services; only roles makes one
	"internal/proxy/plan":         1, // what one node does with a Service; pure
	"internal/policy":             4, // the data path of NetworkPolicies; only roles makes one
	"internal/policy/plan":        1, // what a NetworkPolicy means; pure
	"internal/proxy/report":       1, // how a node says what its kernel does with a Service; ctl reads it
	"internal/dns":                4, // the names of Services for this node's pods; only roles makes one
	"internal/hostdns":            1, // the host's own programs ask our DNS, too
	"internal/dns/names":          1, // what a name asks for; pure
	"internal/gateway":            4, // HTTP by host and path on every node; only roles makes one
	"internal/gateway/routes":     1, // which route a request takes; pure, knows no front end
	"internal/gateway/frontends":  1, // what DNS objects and Ingresses mean as routes; pure
	"internal/gateway/plain":      1, // most requests, at little cost; is told routes
	"internal/gateway/pages":      1, // what the gateway says itself; pure
	"internal/gateway/wire":       1, // heads and chunks of HTTP/1.1; pure
	"internal/gateway/backends":   1, // the endpoints of Services for the gateway, and their turns; reads no API
	"internal/exposition":         1, // Prometheus' text format; the kubelet and the API server write it
	"internal/rates":              1, // how fast a counter grows; pure
	"internal/metrics":            4, // what nodes and pods use; only roles makes one
	"internal/places":             1, // connections, shared among clients
	"internal/announce":           1, // answers for addresses by ARP; knows no Service
	"internal/conntrack":          1, // flows that the kernel tracks; knows no pod
	"internal/memory":             1, // the process's own memory; knows nothing of what is in it
	"internal/idle":               1, // connections for their next use; the gateway and functions keep some
	"internal/relay":              1, // forwards a port in user space; the pods' network and the proxy both need it
	"internal/logind":             1, // the machine's shutdown, as systemd says it; knows no pod
	"internal/balancer":           1, // a TCP balancer; knows no master
	"internal/channels":           1,
	"internal/streaming":          1, // the other end of channels; the kubelet and the API server stream alike
	"internal/datadir":            2, // the data directory as a whole; writes by disk
	"internal/snapshots":          2, // copies of the store at intervals; writes by disk
	"internal/disk":               1, // how every part writes files that outlive it
	"internal/aggregation":        1, // groups that parts answer; the API server asks them by it
	"internal/function":           4, // functions and their calls; only roles makes one
	"internal/function/plan":      1, // what a Function means, and how many instances a load asks for; pure
	"internal/function/image":     1, // images of functions; knows no cluster
	"internal/function/instance":  1, // the program in an instance
	"internal/function/post":      1, // requests to one instance; knows no function
	"internal/workflow":           4, // state machines whose tasks are functions; only roles makes one
	"internal/workflow/asl":       0, // the States Language; pure, and validation reads it
	"internal/workflow/graph":     1, // a state machine as a drawing; pure, ctl shows it
	"internal/imageregistry":      1, // a registry of images; knows no function
	"internal/imageaccess":        1, // how a machine gets into registries of images
	"internal/gpu":                4, // jobs on Slurm clusters; only roles makes one
	"internal/gpu/plan":           1, // what a GpuJob is for Slurm, and what news of it mean; pure
	"internal/gpu/results":        1, // files that came back; knows no object
	"internal/slurm":              1, // a Slurm cluster behind its login node; knows no object
	"internal/api":                0,
	"internal/clock":              0, // the time of day, which a test may falsify for one daemon
	"internal/chroot":             0, // a worker is in none
	"internal/suggest":            0, // "did you mean", for config too
	"config":                      0,

	"internal/controller/podautoscaler/decide": 1, // how many pods a load asks for; pure
	"internal/metrics/query/rules":             1, // which series are metrics for autoscalers, and how they are asked for; pure
}

// shared are packages of floor 4 that other parts of floor 4 may use, and why.
var shared = map[string]string{
	"internal/controller/loop":      "the engine of every controller",
	"internal/controller/expect":    "what controllers have asked for and not yet seen",
	"internal/controller/pods":      "what all controllers of pods do alike",
	"internal/controller/leader":    "one of several masters leads",
	"internal/controller/owner":     "whose an object is",
	"internal/controller/sightings": "when this master saw what another's clock has dated",
	"internal/controller/entry":     "where traffic enters the cluster, for load balancers and Ingresses alike",
}

// callers are packages that only some may import, beside tests' helpers: what everybody else wants of them goes through
// client.Interface.
var callers = map[string][]string{
	"internal/registry": {"internal/registry", "internal/apiserver", "internal/client/local", "roles"},
	"internal/store":    {"internal/store", "internal/registry", "roles"},
	// Package network serialises what these do; peers and the tests' hosts, which are below it, use overlay's Peer.
	"internal/network/overlay":    {"internal/network", "internal/bench/traffic"},
	"internal/network/hostfilter": {"internal/network"},
	"internal/network/hostports":  {"internal/network"},
	"internal/network/ipam":       {"internal/network"},
	"internal/network/host":       {"internal/network"},
	"internal/bench/bed":          {"internal/bench"},
}

// apart are packages whose subpackages never import each other, but for those named here: each of them can be read by itself.
var apart = map[string][]string{
	"internal/bench": {"internal/bench/bed"},
}

// doors are vendors with one door each. A door is a package with all below it; "=" before it is that package alone.
var doors = map[string][]string{
	"github.com/labstack/echo/v4":       {"internal/apiserver"},
	"go.etcd.io/etcd/server":            {"internal/store/etcd", "internal/store/external/externaltest"}, // the tests' own server
	"go.etcd.io/etcd/client/v3":         {"internal/store"},
	"go.etcd.io/raft":                   {"internal/store/etcd"},
	"go.etcd.io/bbolt":                  {"internal/store/etcd", "internal/kubelet/containerd"},
	"github.com/containerd/containerd":  {"internal/kubelet/containerd", "internal/bench/pods"},
	"github.com/urfave/cli/v2":          {"", "=internal/ctl", "internal/ctl/commandline"}, // the rooms of ctl know no flag
	"github.com/golang-jwt/jwt/v5":      {"internal/tokens"},
	"github.com/coredns/coredns":        {"internal/dns"},
	"github.com/miekg/dns":              {"internal/bench/traffic", "internal/dns"},
	"github.com/google/nftables":        {"internal/nft", "internal/bench/traffic", "internal/hosts"},
	"github.com/mdlayher/netlink":       {"internal/nft", "internal/conntrack"},
	"github.com/vishvananda/netlink":    {"internal/network", "internal/machine", "internal/hosts"},
	"github.com/godbus/dbus/v5":         {"internal/logind", "internal/hostdns"},
	"github.com/anishathalye/porcupine": {"internal/hosts/history"},
	"github.com/gorilla/websocket":      {"internal/channels", "internal/streaming", "internal/client/remote", "internal/bench/pods"},
	"k8s.io/streaming":                  {"internal/streaming", "internal/client/remote"},
	"sigs.k8s.io/yaml":                  {"internal/api", "internal/apiserver", "internal/registry", "internal/ctl", "internal/client/remote", "internal/certs", "internal/metrics/query/rules", "config"},
	"go.etcd.io/etcd/etcdutl":           {"internal/store/etcd/recovery"},
	"golang.org/x/crypto/ssh":           {"internal/slurm"},
	"github.com/pkg/sftp":               {"internal/slurm"},
	"github.com/theory/jsonpath":        {"internal/workflow/asl"},
	// A registry of images, and images.
	"github.com/distribution/distribution":   {"internal/imageregistry"},
	"github.com/google/go-containerregistry": {"internal/function/image", "=internal/function"},
}

// forbidden would make the daemon too heavy, or be the system instead of us.
var forbidden = []string{"k8s.io/kubernetes", "k8s.io/apiserver", "k8s.io/client-go/kubernetes", "k8s.io/client-go/informers"}

func floorOf(dir string) int {
	for d := dir; ; d = filepath.Dir(d) {
		if d == "." {
			return floors[""]
		}
		if f, ok := floors[d]; ok {
			return f
		}
	}
}

// part is the part of floor 4 that a package belongs to: internal/kubelet/volume is of internal/kubelet.
func part(dir string) string {
	p := strings.Split(dir, "/")
	if len(p) > 2 && p[1] == "controller" {
		return strings.Join(p[:3], "/")
	}
	return strings.Join(p[:min(2, len(p))], "/")
}

func within(dir, root string) bool {
	return dir == root || root != "" && strings.HasPrefix(dir, root+"/")
}

func TestImportsOnlyGoDown(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "deploy" || strings.HasPrefix(d.Name(), ".") && path != ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if dir == "." {
			dir = ""
		}
		for _, imp := range file.Imports {
			to, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			check(t, path, dir, to)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, path, from, to string) {
	for _, f := range forbidden {
		if within(to, f) {
			t.Errorf("%s imports %s, which does not belong in the daemon", path, to)
		}
	}
	for vendor, rooms := range doors {
		if !within(to, vendor) {
			continue
		}
		ok := false
		for _, r := range rooms {
			alone, only := strings.CutPrefix(r, "=")
			ok = ok || only && from == alone || within(from, r) || r == "" && from == ""
		}
		if !ok {
			t.Errorf("%s imports %s, whose door is %v", path, to, rooms)
		}
	}
	own, ours := strings.CutPrefix(to, "minik8s/")
	if !ours || strings.HasSuffix(from, "test") { // contracts and helpers of tests may look anywhere
		return
	}
	for pkg, rooms := range callers {
		if within(own, pkg) && !slices.ContainsFunc(rooms, func(room string) bool { return within(from, room) }) {
			t.Errorf("%s imports %s, which is for %v alone", path, own, rooms)
		}
	}
	for pkg, common := range apart {
		if own != pkg && within(own, pkg) && from != pkg && !slices.Contains(common, own) {
			t.Errorf("%s imports %s, which is for %s alone", path, own, pkg)
		}
	}
	a, b := floorOf(from), floorOf(own)
	switch {
	case b < a:
	case b > a:
		t.Errorf("%s (floor %d) imports %s (floor %d): imports only go down", path, a, own, b)
	case a == 4 && part(from) != part(own):
		if _, ok := shared[own]; !ok {
			t.Errorf("%s imports %s: parts never import each other, they meet in client.Interface", path, own)
		}
	}
}
