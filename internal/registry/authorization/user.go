package authorization

import (
	"slices"
	"strings"

	"minik8s/internal/api"
)

// User is the sender of a request. UID and Extra are additional information and do not affect decisions.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Groups that have a meaning here; the names are Kubernetes'.
const (
	GroupMasters       = api.GroupMasters // may do everything
	GroupNodes         = "system:nodes"   // a kubelet; its user is system:node:NAME
	GroupAuthenticated = "system:authenticated"
	nodeUserPrefix     = "system:node:"
	GroupMasterNodes   = api.GroupMasterNodes
	// GroupBootstrappers is the group of machines that show a join token.
	GroupBootstrappers = "system:bootstrappers"
	// GroupServiceAccounts is the group of all service accounts; with ":NAMESPACE" appended, of those of a namespace.
	GroupServiceAccounts = "system:serviceaccounts"
)

// System is the daemon itself.
var System = User{Name: "system:minik8s", Groups: []string{GroupMasters}}

// Part returns the identity of a part of the daemon: "scheduler", "kubelet".
func Part(name string, groups ...string) User {
	return User{Name: "system:" + name, Groups: append(groups, GroupAuthenticated)}
}

// Proxy returns the identity of what leads the traffic to Services on a node, where it has one of its own.
func Proxy() User { return Part("kube-proxy") }

// NodeUser returns the identity of a node's kubelet.
func NodeUser(node string) User {
	return User{Name: nodeUserPrefix + node, Groups: []string{GroupNodes, GroupAuthenticated}}
}

// MasterNode returns the identity of the kubelet of a master, whose key has this certs.KeyPin.
func MasterNode(node, keyPin string) User {
	u := NodeUser(node)
	u.Groups = append(u.Groups, GroupMasterNodes)
	u.Extra = map[string][]string{KeyExtra: {keyPin}}
	return u
}

// NodeOf returns the node whose kubelet the user is; false if the user is not a kubelet. A user without a node's name is
// none: pods that are on no node yet would be its own.
func NodeOf(u User) (node string, ok bool) {
	if !slices.Contains(u.Groups, GroupNodes) {
		return "", false
	}
	node, ok = strings.CutPrefix(u.Name, nodeUserPrefix)
	return node, ok && node != ""
}
