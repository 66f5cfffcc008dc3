// Package clock is the time of day as this daemon sees it. Certificates, tokens, Leases and the times in objects come from
// it, and nothing else does, so that a test can give one daemon a clock that is wrong: all other ways to do that change the
// whole machine's. etcd alone keeps the machine's clock, for the certificates of its members. How long something takes is
// measured with package time.
//
// Everybody may call Now; only main calls Skew. It holds nothing but the offset.
package clock
