// Package clustertrust keeps the ConfigMap kube-system/extension-apiserver-authentication, from which an extension API
// server learns whom to believe: the CA of the cluster's clients, the CA and the name of the front proxy, and the headers
// in which that says whom a request is from. Upstream it is the cluster authentication trust controller.
//
// It promises: the ConfigMap has what this master has, and is made right again when somebody changes or deletes it. CAs
// that another master put there stay until they expire, so that masters with different front proxies, of clusters from
// before there was one, are all believed. Nothing is written while nothing changes.
//
// It runs on every master, leading or not, and watches that one ConfigMap; roles starts it. It keeps nothing.
package clustertrust
