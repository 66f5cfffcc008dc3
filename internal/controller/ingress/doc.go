// Package ingress says at which addresses Ingresses are reached, and makes the class by which they name the gateway.
//
// It promises: status.loadBalancer of each Ingress that the gateway serves names the addresses of the nodes that are ready
// and run pods, where the gateway is, with the ports 80 and, for an Ingress with certificates, 443; it follows the nodes.
// When no node is ready the addresses stay, as those of load balancers. Addresses of an Ingress that the gateway no longer
// serves are taken back, if they are as this controller writes them; what other controllers write is not touched.
//
// When it starts and there is no IngressClass "minik8s", it makes one, as the default unless another class is that. Who
// deletes the class has it back at the next start. Whoever changes it keeps the change.
//
// It reads Ingresses, IngressClasses and Nodes, and writes the status of Ingresses. roles runs it on the master that leads.
// It keeps nothing: after a kill -9 the first lists show what there is.
package ingress
