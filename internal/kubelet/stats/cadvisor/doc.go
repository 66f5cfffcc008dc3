// Package cadvisor answers cAdvisor's REST API, v1.3 and v2.1, as far as the clients of github.com/google/cadvisor/client
// ask: machine, containers, subcontainers, docker and events; version, attributes, machine, machinestats and stats. So whoever
// reads a cAdvisor (docs/api.md and docs/api_v2.md there) reads a kubelet of ours too, and package metrics reads either.
//
// Containers are named by their cgroups, "/minik8s/podUID/ID", pods as a whole and the machine ("/") too; a container has
// its id as an alias, and the labels io.kubernetes.pod.name, .namespace, .uid and io.kubernetes.container.name.
//
// It promises: an unknown container is 404; a question never waits, but the first one for more than one sample, which
// waits a second for the second. The server of the kubelet calls it.
package cadvisor
