// Package servicecidr keeps the status of ServiceCIDRs, and holds those that are deleted until none of their addresses is in
// use.
//
// It promises: a ServiceCIDR has the condition Ready, and loses it when its deletion begins, from when on no Service gets an
// address of it; it goes when each of its addresses is free or also in a ServiceCIDR that stays. The condition names some of
// the objects that hold it: Services, DNS objects, and the IPAddresses that people have made.
//
// It reads ServiceCIDRs, Services, DNS objects and IPAddresses, and writes the status and the finalizer of ServiceCIDRs. roles
// runs it beside the master. Everything is decided from the objects, so a kill -9 loses nothing.
package servicecidr
