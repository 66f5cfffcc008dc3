// Package report is what a node says of the way to a Service: the words that the kubelet's server sends and ctl reads.
//
// Package proxy fills a Service from its own state and from the kernel's rules, the kubelet's server an Attempt. It holds no
// state and does no I/O.
package report

import "net/netip"

// The paths at a kubelet's server, below a node's proxy. Pods and Services are named by NAMESPACE/NAME.
const (
	// Services answers GET with a Service. The query's "from" is the address of a pod of the node whose way is asked for.
	Services = "/minik8s/services/"
	// Dials answers POST with an Attempt: a connection from within a pod's network to the query's "address" by its
	// "network" (tcp).
	Dials = "/minik8s/dial/"
	// Lookups answers POST with an Attempt: the question, from within a pod's network, for the address of the query's "name",
	// which ends with a dot, or with ".svc": then the cluster's domain follows. The query's "address" is the DNS server's.
	Lookups = "/minik8s/lookup/"
)

// Service is what a node does with connections to a Service.
type Service struct {
	Node string `json:"node"`
	// Known: the node's proxy leads connections to it. Otherwise Why says why not.
	Known bool   `json:"known"`
	Why   string `json:"why,omitempty"`
	Calls []Call `json:"calls,omitempty"`
}

// The callers whose ways may differ.
const (
	FromPods    = "pods"    // of this node
	FromHost    = "host"    // the node's own processes
	FromOutside = "outside" // other machines
)

// Call is one address and port of a Service, and who calls it.
type Call struct {
	Protocol string         `json:"protocol"` // TCP, UDP or SCTP
	At       netip.AddrPort `json:"at"`
	NodePort bool           `json:"nodePort,omitempty"` // At is one of the node's own addresses, for all of them
	From     string         `json:"from"`
	// Wanted is where the proxy wants it to lead, Kernel where the kernel's rules do.
	Wanted Outcome `json:"wanted"`
	Kernel Outcome `json:"kernel"`
	// Remembered is the endpoint with which the caller stays (sessionAffinity); invalid: with none yet.
	Remembered netip.AddrPort `json:"remembered,omitzero"`
	// Error says why the kernel's rules could not be followed.
	Error string `json:"error,omitempty"`
	// Way are the rules of the kernel that match, each after its chain's name.
	Way []string `json:"way,omitempty"`
}

// Outcome is what becomes of a connection.
type Outcome struct {
	// Endpoints are those to which it may go, in their turns.
	Endpoints []netip.AddrPort `json:"endpoints,omitempty"`
	// Otherwise is what else may become of it: "refused", "dropped", "untouched" (by any rule of Services).
	Otherwise []string `json:"otherwise,omitempty"`
}

// Agrees reports whether the kernel does what the proxy wants.
func (c Call) Agrees() bool {
	return c.Error == "" && same(c.Wanted.Endpoints, c.Kernel.Endpoints) && same(c.Wanted.Otherwise, c.Kernel.Otherwise)
}

// same compares without the order.
func same[T comparable](a, b []T) bool {
	count := map[T]int{}
	for _, x := range a {
		count[x]++
	}
	for _, x := range b {
		count[x]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// Attempt is what came of trying something within a pod's network.
type Attempt struct {
	// Done: it connected, or was answered.
	Done bool `json:"done"`
	// Error says in the kernel's words why not; Refused and Late are the two kinds that mean something.
	Error   string `json:"error,omitempty"`
	Refused bool   `json:"refused,omitempty"` // somebody answered that nobody listens there
	Late    bool   `json:"late,omitempty"`    // nobody answered in time
	// Micros is how long it took, in microseconds.
	Micros int64 `json:"micros"`
	// Server is the endpoint to which the connection was led, as conntrack has it; invalid: it is not known.
	Server netip.AddrPort `json:"server,omitzero"`
	// Name is the name that was asked for, Asked the DNS server, and Addresses its answer.
	Name      string         `json:"name,omitempty"`
	Asked     netip.AddrPort `json:"asked,omitzero"`
	Addresses []netip.Addr   `json:"addresses,omitempty"`
}
