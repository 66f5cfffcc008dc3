package api

import (
	"slices"
	"strings"
)

// GroupMasters is the group of users who may do everything, with Kubernetes' name.
const GroupMasters = "system:masters"

// GroupMasterNodes is the group of masters' kubelets, which may label their Node as a master's. A master's own daemon is
// in it, and nobody else: no certificate is signed for it.
const GroupMasterNodes = "minik8s:master-nodes"

// bootstrappers begins the groups of machines that show a join token. Some of them may become masters.
const bootstrappers = "system:bootstrappers"

// PrivilegedGroup returns the first of some groups for which no certificate is signed at anybody's request; empty if
// there is none.
func PrivilegedGroup(groups []string) string {
	for _, g := range groups {
		if slices.Contains([]string{GroupMasters, GroupMasterNodes}, g) || strings.HasPrefix(g, bootstrappers) {
			return g
		}
	}
	return ""
}
