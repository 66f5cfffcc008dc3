package cri

import "errors"

// What a pull can fail with; errors.Is tells.
var (
	ErrImageNotFound       = errors.New("no such image")
	ErrImageUnauthorized   = errors.New("not authorized to pull")
	ErrRegistryUnavailable = errors.New("registry unavailable")
	// ErrInvalidImageName is of every method that takes a reference.
	ErrInvalidImageName = errors.New("invalid image name")
)

// StartError is a container that could not be started through its own fault: no such command, no
// permission, a working directory that is a file. It is shown on the pod, and the container counts
// as exited with ExitCode.
type StartError struct {
	Message  string
	ExitCode int32 // 127 no such command, 126 not executable, 128 anything else
}

func (e *StartError) Error() string { return e.Message }
