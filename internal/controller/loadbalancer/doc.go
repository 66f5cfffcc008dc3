// Package loadbalancer answers Services of the type LoadBalancer with the nodes' own addresses: every node leads traffic
// to a Service's ports on such an address to its endpoints, so a cluster without a load balancer in front has one.
//
// It promises: status.loadBalancer of each such Service names the internal addresses of the nodes that are ready and run
// pods, in order, and follows them. A Service with a loadBalancerClass is another implementation's, and not touched.
// Nodes with the label node.kubernetes.io/exclude-from-external-load-balancers are left out. When no node is ready, the
// addresses stay: it is rather the master that is cut off, and an address that was announced is not taken back for it.
//
// It reads Services and Nodes and writes the status of Services. roles runs it on the master that leads. It keeps nothing.
package loadbalancer
