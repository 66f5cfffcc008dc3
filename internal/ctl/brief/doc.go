// Package brief says things about objects in few words, the same in all commands: how messages name an object, what
// a command line needs to find it again, how a pod stands.
//
// It promises nothing but the words; it keeps no state. All rooms of ctl call it.
package brief
