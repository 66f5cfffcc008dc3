package machine

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
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

// SignalChild sends a signal to a child of this program. A process that gets SIGSTOP runs on for a moment, on each of its
// threads: SignalChild returns when the last has stopped. A child that has ended meanwhile is no error.
func SignalChild(p *os.Process, sig syscall.Signal) error {
	if err := p.Signal(sig); err != nil || sig != syscall.SIGSTOP {
		return err
	}
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err == unix.ECHILD { // it has ended and was waited for
			return nil
		}
		return os.NewSyscallError("waitid", err)
	}
}
