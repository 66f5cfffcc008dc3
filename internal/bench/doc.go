// Command bench measures minik8sd from the outside, like a client. It prints each figure with the goal and with what
// limits it. It starts the daemon that `make build` built, in its own network namespace and directory, and removes
// everything afterwards.
package main
