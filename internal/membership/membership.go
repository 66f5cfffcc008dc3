package membership

import (
	"fmt"
	"net/netip"
)

// The paths.
const (
	Path         = "/minik8s/v1/masters" // GET: []Member; POST Request: Admission; DELETE below it: a member by name or ID
	KeysPath     = "/minik8s/v1/keys"    // POST: Keys
	SnapshotPath = "/minik8s/v1/snapshot"
)

// User is the user of the certificates with which the members of the store know each other.
const User = "minik8s:etcd"

// Keys is what makes a machine a master. Everything is PEM.
type Keys struct {
	CACert []byte `json:"caCert"`
	CAKey  []byte `json:"caKey"`
	// ServiceAccountKey signs the tokens of service accounts.
	ServiceAccountKey []byte   `json:"serviceAccountKey"`
	Settings          Settings `json:"settings"`
}

// Settings are those on which all masters must agree.
type Settings struct {
	ClusterCIDR   netip.Prefix `json:"clusterCIDR"`
	ClusterDomain string       `json:"clusterDomain"`
}

// Differ says which setting of a machine's own is not that of the cluster, and what to do; nil if there is none.
func (s Settings) Differ(own Settings) error {
	switch {
	case s.ClusterCIDR != own.ClusterCIDR:
		return fmt.Errorf("cluster-cidr: it is %s in the cluster and %s here: give --cluster-cidr=%s", s.ClusterCIDR, own.ClusterCIDR, s.ClusterCIDR)
	case s.ClusterDomain != own.ClusterDomain:
		return fmt.Errorf("cluster-domain: it is %s in the cluster and %s here: give --cluster-domain=%s", s.ClusterDomain, own.ClusterDomain, s.ClusterDomain)
	}
	return nil
}

// Request asks that a machine be admitted as a member of the store.
type Request struct {
	Name string `json:"name"`
	// Address is where the other members reach it, HOST:PORT.
	Address string `json:"address"`
}

// Admission is the answer: the addresses of all members, the new one's too.
type Admission struct {
	Members []string `json:"members"`
}

// Member is one of the masters, as a member of the store.
type Member struct {
	ID      string `json:"id"` // hexadecimal
	Name    string `json:"name,omitempty"`
	Address string `json:"address,omitempty"`
	// Role is leader, voter or learner.
	Role string `json:"role"`
	// Lost says that the leader does not hear from it.
	Lost bool `json:"lost,omitempty"`
}
