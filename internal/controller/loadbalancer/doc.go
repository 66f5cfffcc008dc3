// Package loadbalancer answers Services of the type LoadBalancer. Without a pool of addresses they have the nodes' own: every node
// leads traffic to a Service's ports on such an address to its endpoints, so a cluster without a load balancer in front
// has one. With a pool (--lb-pool) each has an address of it to itself, and one node at a time answers for it on its network
// (package announce); whoever gets there is led on as at any external address.
//
// It promises: without a pool, status.loadBalancer of each such Service names the internal addresses of the nodes that are ready and
// run pods, in order, and follows them. Of two Services that want the same port there the younger one says so in its condition
// LoadBalancerPortsError and by an Event. With a pool, it names the one address, which registry gives in the transaction that
// stores the Service (again, when one becomes free), and the annotation minik8s.io/announced-by names the node that answers: one
// that is ready and takes traffic, on the address' network if there is one, with an endpoint if traffic stays on its node. It stays
// while it is such a node. Since this controller runs on the master that leads, and writes only while it does, it is one node.
//
// A Service with a loadBalancerClass is another implementation's, and not touched. Nodes with the label
// node.kubernetes.io/exclude-from-external-load-balancers are left out. When no node is ready, all stays: it
// is rather the master that is cut off, and an address that was announced is not taken back for it.
//
// It reads Services, Nodes and EndpointSlices and writes Services' status, that annotation and, so that registry gives an address, Services
// as they are. roles runs it on the master that leads. It keeps nothing.
package loadbalancer
