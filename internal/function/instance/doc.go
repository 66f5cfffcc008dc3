// Package instance has the program that runs in each instance of a Python function: serve.py, which says itself what it does.
// It travels in the daemon and becomes a file of the function's image. It knows no cluster.
package instance

import _ "embed" // serve.py

// Server is serve.py.
//
//go:embed serve.py
var Server []byte
