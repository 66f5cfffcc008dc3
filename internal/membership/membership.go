package membership

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The paths.
const (
	Path         = "/minik8s/v1/masters"  // GET: List; POST Request: Admission; DELETE below it: a member by name or ID
	KeysPath     = "/minik8s/v1/keys"     // POST: Keys
	SnapshotPath = "/minik8s/v1/snapshot" // GET: a file, with RevisionHeader
	SettingsPath = "/minik8s/v1/settings" // GET: Shared, for every machine of the cluster
)

// HereQuery has the master that is asked list or remove members by itself: it asks no other one.
const HereQuery = "here"

// RevisionHeader is the revision of the store in a snapshot.
const RevisionHeader = "Minik8s-Revision"

// User is the user of the certificates with which the members of the store know each other.
const User = "minik8s:etcd"

// Keys is what makes a machine a master. Everything is PEM.
type Keys struct {
	CACert []byte `json:"caCert"`
	CAKey  []byte `json:"caKey"`
	// ServiceAccountKey signs the tokens of service accounts.
	ServiceAccountKey []byte `json:"serviceAccountKey"`
	// FrontProxyCACert and FrontProxyCAKey sign the certificate by which extension API servers know the API server. A master
	// of an earlier version has none.
	FrontProxyCACert []byte   `json:"frontProxyCACert,omitempty"`
	FrontProxyCAKey  []byte   `json:"frontProxyCAKey,omitempty"`
	Settings         Settings `json:"settings"`
}

// Settings are those on which all masters must agree.
type Settings struct {
	ClusterCIDR   netip.Prefix `json:"clusterCIDR"`
	ClusterDomain string       `json:"clusterDomain"`
	// EtcdPrefix is where the cluster is in an etcd that others run; empty: its masters keep it.
	EtcdPrefix string `json:"etcdPrefix,omitempty"`
	// Shared are all settings of which the cluster has one value, by name. A master of an earlier version says none.
	Shared Shared `json:"shared,omitempty"`
}

// Differ says which setting of a machine's own is not that of the cluster, and what to do; nil if there is none.
func (s Settings) Differ(own Settings) error {
	switch {
	case s.EtcdPrefix != "" && own.EtcdPrefix == "":
		return fmt.Errorf("etcd-servers: an etcd that others run keeps the cluster: give --etcd-servers as on the other masters, and --etcd-prefix=%s", s.EtcdPrefix)
	case s.EtcdPrefix == "" && own.EtcdPrefix != "":
		return errors.New("etcd-servers: the cluster's masters keep it themselves: remove --etcd-servers and what goes with it")
	case s.EtcdPrefix != own.EtcdPrefix:
		return fmt.Errorf("etcd-prefix: it is %s in the cluster and %s here: give --etcd-prefix=%s", s.EtcdPrefix, own.EtcdPrefix, s.EtcdPrefix)
	case s.ClusterCIDR != own.ClusterCIDR:
		return fmt.Errorf("cluster-cidr: it is %s in the cluster and %s here: give --cluster-cidr=%s", s.ClusterCIDR, own.ClusterCIDR, s.ClusterCIDR)
	case s.ClusterDomain != own.ClusterDomain:
		return fmt.Errorf("cluster-domain: it is %s in the cluster and %s here: give --cluster-domain=%s", s.ClusterDomain, own.ClusterDomain, s.ClusterDomain)
	}
	return s.Shared.Differ(own.Shared)
}

// Shared are settings of which a cluster has one value, by their names.
type Shared map[string]string

// Differ says which settings of a machine's own are not those of the cluster, and what to do; nil if there are none. What only
// one of them has is not compared: versions differ, and a worker has fewer.
func (s Shared) Differ(own Shared) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if have, ok := s[name]; ok && have != own[name] {
			errs = append(errs, fmt.Errorf("%s: it is %s in the cluster and %s here: give --%s=%s; or, to change it everywhere, first set it in the ConfigMap %s/%s and then start all machines with it",
				name, said(have), said(own[name]), name, have, metav1.NamespaceSystem, SettingsMap))
		}
	}
	return errors.Join(errs...)
}

func said(value string) string { return cmp.Or(value, "empty") }

// SettingsMap is the name of the ConfigMap in kube-system that has the cluster's Shared settings.
const SettingsMap = "minik8s-settings"

// Request asks that a machine be admitted as a member of the store.
type Request struct {
	Name string `json:"name"`
	// Address is where the other members reach it, HOST:PORT.
	Address string `json:"address"`
	// Key is the certs.KeyPin of its kubelet's key, by which a Node's name is known to be this machine's.
	Key string `json:"key,omitempty"`
}

// Admission is the answer: the addresses of all members, the new one's too.
type Admission struct {
	Members []string `json:"members"`
}

// List is who the members are.
type List struct {
	// Revision is the store's. It is 0 if no majority could be asked: then the members are those that one of them knew last.
	Revision int64    `json:"revision"`
	Members  []Member `json:"members"`
}

// Member is one of the masters, as a member of the store.
type Member struct {
	ID      string `json:"id"` // hexadecimal
	Name    string `json:"name,omitempty"`
	Address string `json:"address,omitempty"`
	// API is where it serves the API, HOST:PORT.
	API string `json:"api,omitempty"`
	// Role is leader, voter or learner.
	Role string `json:"role"`
	// State is one of the constants below.
	State string `json:"state"`
}

// The states of members. Only the leader knows who is lost.
const (
	Up      = "up"
	Lost    = "lost"    // the leader does not hear from it
	Joining = "joining" // it was admitted and has not started yet
	Unknown = "unknown" // the leader could not be asked
)

// The roles of members.
const (
	Leader  = "leader"
	Voter   = "voter"
	Learner = "learner" // it has all data, serves the API, and does not vote
)
