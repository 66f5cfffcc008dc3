// Package nft is the interface to the kernel's packet filter (nftables, by netlink). A table of ours is data: sets,
// chains and rules, each as expressions and as text. It is written as one transaction, and compared with what the
// kernel has. In the tables of other programs it reads the rules that may stop traffic, and inserts accepting rules
// into their chains.
//
// Who calls it: parts that own a table (the pods' network; later Services and policies). It knows nothing
// of pods. The calling thread's network namespace is the one that is read and changed.
//
//	table.go    a table as data, its text, and the interface Ruleset
//	rule.go     what rules of ours are made of
//	kernel.go   the kernel as a Ruleset: Apply, Change, Same, Chains, Delete
//	others.go   Others: the base chains of other tables and their rules
//	read.go     one of these rules, from its expressions
//	match.go    Match: what such a rule asks for, and how much of some traffic that is
//	effect.go   Effect: what becomes of traffic in such a chain, and by which rule
//	accept.go   Accept: a rule that accepts, as expressions for any table, also for one that iptables keeps
//	admit.go    Admit: puts Accepts at the head of another's chain, or takes them out; Admitted: are they there?
//	watch.go    events: some ruleset has changed, perhaps by ourselves
//	fake.go     a Ruleset in memory, for tests
//
// It promises: Apply leaves either the whole table or what was there before. Same compares with what the kernel
// listed right after Apply, so a kernel that represents a rule differently causes no endless repairs. Rules put into
// another's chain carry a comment that starts with the caller's tag; Admit with that tag and no rules takes them out
// again. In a table of iptables-nft they are rules that iptables-save can print.
//
// # What survives
//
// Everything is in the kernel and stays however the process ends. Nothing is written to disk.
package nft
