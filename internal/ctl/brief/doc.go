// Package brief has short texts about objects that all commands share: how messages name an object, which flags a
// command needs to find it again, what state a pod is in.
//
// It only makes texts and keeps no state. All packages of ctl call it.
package brief
