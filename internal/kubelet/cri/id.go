package cri

// ContainerIDPrefix is how Kubernetes writes the runtime into a container's id.
const ContainerIDPrefix = "containerd://"
