// Package loop is the work queue of every controller: a queue of keys, several workers, one reconcile function.
//
// It promises: a key is never worked on twice at once; a key that was added while it was being worked on is worked on
// again; one whose reconcile failed is retried after a back-off of its own (5 ms doubling to 30 s); a panic counts as
// a failure of that key and does not stop others; the fifth failure of a key in a row, and each after it, is logged
// as a warning. The process's metrics have, by the loop's name, how many keys wait and are retried, and how long they
// wait and take.
//
// Controllers use it: their informers' handlers call Add, their Reconcile reads the informers, makes a plan and
// carries it out. Nothing survives a kill -9; the informers' first lists fill the queue again.
package loop
