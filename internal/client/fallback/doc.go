// Package fallback is a client.Interface over two others: the first one while that is of use, and else the second one. A
// master's kubelet has it: its own API is in its process, and when that has lost the other masters, or is not there yet, the
// others' are asked, over the network.
//
// It promises: a call goes to one of the two and is never repeated at the other, because a write whose answer is lost may
// have been done. Which one it is changes only between calls; then all watches end, as by a broken connection, and who
// watches lists again. While neither is there, calls fail at once (503).
//
// Who calls it: roles, which says what is of use. Nothing of it survives a kill -9.
package fallback
