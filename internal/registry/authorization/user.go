package authorization

import (
	"slices"
	"strings"
)

// User is who asks. UID and Extra are what is known beside the name, and decide nothing.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Groups that mean something here; the names are Kubernetes'.
const (
	GroupMasters       = "system:masters" // may do everything
	GroupNodes         = "system:nodes"   // a kubelet; its user is system:node:NAME
	GroupAuthenticated = "system:authenticated"
	nodeUserPrefix     = "system:node:"
	// GroupServiceAccounts is of all service accounts; with ":NAMESPACE", of those of a namespace.
	GroupServiceAccounts = "system:serviceaccounts"
)

// System is the daemon itself.
var System = User{Name: "system:minik8s", Groups: []string{GroupMasters}}

// Part is the identity of a part of the daemon: "scheduler", "kubelet".
func Part(name string, groups ...string) User {
	return User{Name: "system:" + name, Groups: append(groups, GroupAuthenticated)}
}

// NodeUser is the identity of the kubelet of a node.
func NodeUser(node string) User {
	return User{Name: nodeUserPrefix + node, Groups: []string{GroupNodes, GroupAuthenticated}}
}

// NodeOf is the node whose kubelet the user is.
func NodeOf(u User) (node string, ok bool) {
	if !slices.Contains(u.Groups, GroupNodes) {
		return "", false
	}
	return strings.TrimPrefix(u.Name, nodeUserPrefix), true
}
