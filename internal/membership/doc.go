// Package membership is how a machine becomes one of several masters, and what masters tell about each other: the paths
// below /minik8s/v1/masters, what is sent there, and a client of them.
//
// A machine that joins needs two things. First the cluster's keys: the CA's and that of service accounts' tokens, so that
// it can sign as every master does. It gets them with a join token made for masters, from a server whose CA has the
// token's pin. Who may make such a token can become the cluster: only administrators may. Then the other masters admit it as a
// member of the store; it asks for that as a master, with a certificate it has signed itself.
// Masters whose store is an external etcd are no members of it: they need the keys alone.
//
// Masters list the members for each other, too: only the leader knows who is lost, so another master asks it; and a master
// that starts asks whether it is still one.
//
// It promises: the keys go only to the holder of a token for masters and to administrators, over TLS or root's socket; settings on which all masters
// must agree are compared before anything is written. Those of which the cluster has one value are in a ConfigMap, with which each
// machine compares its own at every start.
//
// apiserver serves the paths, roles joins by them, ctl shows and changes the members. It has no state.
package membership
