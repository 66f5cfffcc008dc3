// Package login is a login node that is reached by SSH: commands and files over one connection.
//
// It promises: nothing, no name and no password, is sent to a host whose key was not given before. There is one connection
// for any number of users; it is opened when it is needed, kept alive, and opened anew after it broke, at growing intervals.
// A wrong password is not tried again and again, since centres lock accounts for it. An error never has a password in it.
//
// A host that asks for more than a key or a password, as for one-time passwords, needs a person once: Login. The connection stands
// until it breaks, and while it is broken nothing is tried.
//
// Commands are given as scripts to /bin/sh on its standard input, so that the user's login shell and its quoting do not matter.
//
// Package slurm uses it; it knows no job. It keeps nothing on disk.
package login
