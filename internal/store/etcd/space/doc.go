// Package space sees to it that etcd never meets a full disk: etcd ends the process when it cannot write to its log or its
// file. So writes are refused while there is still some space, and some space is allocated beforehand, so that no other
// program can use it: the file's next pages, the log segment after the next, and a reserve file that is deleted for
// everything else, mainly a start on a full disk.
//
// The store asks it before each write, and what makes a store without a server prepares the disk with it. What is allocated
// survives a kill -9, and New finds it again.
package space
