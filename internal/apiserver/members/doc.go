// Package members serves what package minik8s/internal/membership describes: the keys for a machine that joins as a master,
// the members of the store, and snapshots of it.
//
// It promises nothing about who asks: registry decides, by the path. apiserver makes it; roles says what a master's keys and members are. It has no state.
package members
