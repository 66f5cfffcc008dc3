// Package nft is the interface to the kernel's packet filter (nftables, by netlink). A table of ours is data: sets,
// chains and rules, each as expressions and as text. It is written as one transaction, and compared with what the
// kernel has. In the tables of other programs it reads the rules that may stop traffic, and inserts accepting rules
// into their chains.
//
// Who calls it: parts that own a table (the pods' network, the proxy of Services), or a part of one (the policies). It knows nothing
// of pods. The calling thread's network namespace is the one that is read and changed.
//
//	table.go    a table as data, its text, and the interface Ruleset
//	rule.go     what rules of ours are made of
//	balance.go  what a load balancer's rules are made of
//	filter.go   what a filter's rules are made of
//	kernel.go   the kernel as a Ruleset: Apply, Change, Same, Chains, Delete
//	edit.go     Edit: a piece of a table changes, in one transaction
//	sync.go     Sync: the kernel's table is compared with the wanted one, without any memory of an earlier process
//	keeper.go   Keeper: a table, or a guest's part of one, stays as its owner wants it, by Edit and Sync
//	state.go    what is compared, and the difference
//	walk.go     what the rules do with a packet
//	others.go   Others: the base chains of other tables and their rules
//	read.go     one of these rules, from its expressions
//	match.go    Match: what such a rule asks for, and how much of some traffic that is
//	effect.go   Effect: what becomes of traffic in such a chain, and by which rule
//	accept.go   Accept: a rule that accepts, as expressions for any table, also for one that iptables keeps
//	admit.go    Admit: puts Accepts at the head of another's chain, or takes them out; Admitted: are they there?
//	watch.go    events: some ruleset has changed, perhaps by ourselves, or our table, by others
//	fake.go     a Ruleset in memory, for tests
//
// It promises: Apply leaves either the whole table or what was there before. Same compares with what the kernel
// listed right after Apply, so a kernel that represents a rule differently causes no endless repairs; Sync needs no such
// memory, and is for rules of which a test shows that the kernel lists them as they were sent. A table changed by Edit and
// Sync is no table for Apply and Same. Every rule can be listed by the nft tool, which aborts, for all tables of the host,
// at a constant or a look-up within a key of several fields, and at ct original daddr. Rules put into
// another's chain carry a comment that starts with the caller's tag; Admit with that tag and no rules takes them out
// again. In a table of iptables-nft they are rules that iptables-save can print.
//
// # What survives
//
// Everything is in the kernel and stays however the process ends. Nothing is written to disk.
package nft
