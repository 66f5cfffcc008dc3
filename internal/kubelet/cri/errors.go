package cri

import "errors"

// The reasons why a pull fails, for errors.Is.
var (
	ErrImageNotFound       = errors.New("no such image")
	ErrImageUnauthorized   = errors.New("not authorized to pull")
	ErrRegistryUnavailable = errors.New("registry unavailable")
	// ErrInvalidImageName is returned by every method that takes a reference.
	ErrInvalidImageName = errors.New("invalid image name")
)

// StartError is the error of a container that cannot be started because of its configuration: no such command, no
// permission, a working directory that is a file. It is shown in the pod's status, and the container counts as exited
// with ExitCode.
type StartError struct {
	Message  string
	ExitCode int32 // 127 no such command, 126 not executable, 128 anything else
}

func (e *StartError) Error() string { return e.Message }
