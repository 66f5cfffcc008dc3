// Package serviceaccount makes and checks the tokens of service accounts: the subresource token, and who shows one.
//
// It promises: a token holds as long as its account, and its pod if it is bound to one, are there, as of now; a kubelet
// gets tokens of the pods on its own node only, and none that is not bound to one; a token for one audience is worth
// nothing to another.
//
// registry calls it and has authorised the request; package tokens signs. It has no state: which tokens hold is in
// the objects.
package serviceaccount
