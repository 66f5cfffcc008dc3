// Package externaltest starts real etcd servers for tests, each a process of its own that can be killed, stopped and
// started again, with TLS: a CA, and certificates for the server and a client. Tests call Main first in their TestMain: the
// server is the test's own program, called again.
package externaltest
