// Package instance has the program that runs in each instance of a Python function: _minik8s_serve.py, which says itself what it does,
// and the HTTP that it speaks. It travels in the daemon and becomes files of the function's image. It knows no cluster.
package instance

import "embed"

// Files are the program: Main, and what it imports.
//
//go:embed *.py
var Files embed.FS

// Main is the file that is run.
const Main = "serve.py"
