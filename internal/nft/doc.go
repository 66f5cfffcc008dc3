// Package nft is the door to the kernel's packet filter. A table of ours is data: sets, chains and rules
// that say what they match both as expressions and as text. It is put in place as one transaction, and
// compared with what the kernel has; what others keep is read as far as it may stop traffic.
//
// Who calls it: parts that own a table (the pods' network; later Services and policies). It knows nothing
// of pods. The calling thread's network namespace is the one that is read and changed.
//
//	rule.go     what rules are made of
//	table.go    a table as data, and its text
//	kernel.go   the kernel: Apply, Change, Same, Delete
//	others.go   base chains of other tables: what stops traffic there, and accepting rules put in
//	watch.go    tells that somebody, perhaps ourselves, has changed something
//	fake.go     a Ruleset in memory, for tests
//
// It promises: Apply leaves either the whole table or what was there before. Same compares with what the
// kernel itself told right after Apply, so a kernel that words a rule in its own way causes no second
// repair. Rules put into another's table carry a comment by which Withdraw finds them again, and in a table
// that iptables keeps they are of the kind that iptables-save can print.
//
// # What survives
//
// All of it is the kernel's and stays when the process ends in whatever way. Nothing is written to disk.
package nft
