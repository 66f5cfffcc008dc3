package task

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// nursery is the process that forks keepers: see deploy/runtime/keeper. It is started when it is first needed, and again if
// it was killed; it ends with the daemon. It forks in place of the daemon because it is small and because it is in the
// keepers' cgroup: moving a process between cgroups takes milliseconds.
type nursery struct {
	program string
	join    func(pid int) error // moves it into the keepers' cgroup

	mu   sync.Mutex
	proc *os.Process
	conn *net.UnixConn
}

// longest is the keeper's REQUEST_SIZE.
const longest = 8192

// title is how much room there is for what ps shows of a keeper: the name of a container.
const title = 64

// request is what a keeper is to do.
type request struct {
	dir             string
	terminal        bool
	in, out, errOut string // named pipes, or files for output; empty: none
	gate            string // the named pipe at which the process waits for its start; empty: it does not wait
	command         []string
}

func (r request) encode() ([]byte, error) {
	flags := ""
	if r.terminal {
		flags = "t"
	}
	fields := append([]string{r.dir, flags, r.in, r.out, r.errOut, r.gate}, r.command...)
	for _, f := range fields {
		if strings.ContainsRune(f, 0) {
			return nil, fmt.Errorf("%q has a zero byte", f)
		}
	}
	message := []byte(strings.Join(fields, "\x00") + "\x00")
	if len(message) > longest {
		return nil, fmt.Errorf("a request of %d bytes to a keeper: expected at most %d", len(message), longest)
	}
	return message, nil
}

// beginTimeout is how long the nursery may take to fork a keeper.
const beginTimeout = 10 * time.Second

// keep has a keeper do what r says, and returns what it says of that: "made PID", "failed CODE" of runc, or "error TEXT". When
// ctx ends before, the keeper goes on; it has its lock by then, so that endKeeper finds it.
func (n *nursery) keep(ctx context.Context, r request) (string, error) {
	message, err := r.encode()
	if err != nil {
		return "", err
	}
	status, theirs, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer status.Close() //nolint:errcheck // it was only read
	err = n.send(message, theirs)
	theirs.Close() //nolint:errcheck // the keeper has its own
	if err != nil {
		return "", fmt.Errorf("starting a keeper: %w", err)
	}
	// It can be found and ended only once it has begun, so whoever gives up waits for that.
	if err := status.SetReadDeadline(time.Now().Add(beginTimeout)); err != nil {
		return "", err
	}
	said := bufio.NewReaderSize(io.LimitReader(status, 4096), 512)
	first, err := said.ReadString('\n')
	if err == nil && first != "begun\n" {
		return strings.TrimSpace(first), nil
	}
	if err == nil {
		err = status.SetReadDeadline(time.Time{})
	}
	if err != nil {
		return "", fmt.Errorf("the keeper did not begin: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { status.Close() })
	defer stop()
	text, err := io.ReadAll(said)
	switch {
	case len(text) > 0 && err == nil:
		return strings.TrimSpace(string(text)), nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", err
	}
	return "", errors.New("the keeper was killed")
}

// send passes a request on. If the nursery has been killed, there will be another.
func (n *nursery) send(message []byte, status *os.File) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for again := range 2 {
		if n.conn == nil {
			if err := n.start(); err != nil {
				return err
			}
		}
		_, _, err := n.conn.WriteMsgUnix(message, unix.UnixRights(int(status.Fd())), nil)
		if err == nil {
			return nil
		}
		n.close()
		if again > 0 {
			return err
		}
	}
	return nil
}

// start starts the nursery; mu is held. It has an environment of its own: what the daemon was started with is nothing for
// runc.
func (n *nursery) start() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "nursery"), os.NewFile(uintptr(pair[1]), "nursery")
	defer ours.Close()   //nolint:errcheck // conn has its own
	defer theirs.Close() //nolint:errcheck // the process has its own
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close() //nolint:errcheck // the process has its own
	n.proc, err = os.StartProcess(n.program, []string{n.program, strings.Repeat(" ", title)}, &os.ProcAttr{
		Dir: "/", Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Files: []*os.File{null, null, null, theirs}, Sys: &unix.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	conn, err := net.FileConn(ours)
	if err != nil {
		n.proc.Kill() //nolint:errcheck // it ends without a socket, too
		n.proc.Wait() //nolint:errcheck // as above
		return err
	}
	n.conn = conn.(*net.UnixConn)
	return n.join(n.proc.Pid)
}

// close ends the nursery; the keepers go on. mu is held, or nobody else is there.
func (n *nursery) close() {
	if n.conn == nil {
		return
	}
	n.conn.Close() //nolint:errcheck // by this it ends
	n.proc.Wait()  //nolint:errcheck // what it returns does not matter
	n.conn, n.proc = nil, nil
}
