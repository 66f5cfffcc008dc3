// Package resolvconf reads the node's resolv.conf(5) as pods may use it. The kubelet calls it for pods whose
// dnsConfig or dnsPolicy builds on the node's settings, the runtime for those that take the file as it is.
// It keeps nothing.
package resolvconf
