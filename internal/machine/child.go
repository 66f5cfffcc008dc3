package machine

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// StartChild starts a command that is killed when this program ends, however it ends. The kernel sends that signal when
// the thread ends that started the command, and the runtime ends threads at will, those of goroutines that change
// namespaces for example. So one thread, which never ends, starts them all.
func StartChild(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error, 1)
	starter() <- func() { started <- cmd.Start() }
	return <-started
}

var starter = sync.OnceValue(func() chan<- func() {
	todo := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range todo {
			f()
		}
	}()
	return todo
})
