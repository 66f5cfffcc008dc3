package events

import (
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"minik8s/internal/clock"
)

// kernelLog is the kernel's log. The library that cAdvisor reads it with cannot end.
type kernelLog struct{ file *os.File }

// record is one of the log's.
type record struct {
	number uint64
	age    time.Duration // of the machine, when it was written
	text   string
}

func openKernel() (*kernelLog, error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &kernelLog{os.NewFile(uintptr(fd), "/dev/kmsg")}, nil
}

func (k *kernelLog) close() { k.file.Close() } //nolint:errcheck // nothing was written

// past calls take with all records that there are.
func (k *kernelLog) past(take func(record)) { k.read(false, take) }

// follow calls take with what is written from then on, until k is closed.
func (k *kernelLog) follow(take func(record)) { k.read(true, take) }

func (k *kernelLog) read(wait bool, take func(record)) {
	conn, err := k.file.SyscallConn()
	if err != nil {
		return // it is closed
	}
	buf := make([]byte, 8<<10) // more than a record may have
	for {
		var n int
		var failed error
		if conn.Read(func(fd uintptr) bool {
			n, failed = unix.Read(int(fd), buf)
			return !wait || !errors.Is(failed, unix.EAGAIN)
		}) != nil {
			return // it is closed
		}
		switch {
		case errors.Is(failed, unix.EPIPE), errors.Is(failed, unix.EINTR):
			// The next record was overwritten meanwhile, and what is read then is the oldest that there is.
		case failed != nil || n == 0:
			return
		default:
			if r, ok := parse(string(buf[:n])); ok {
				take(r)
			}
		}
	}
}

// parse reads a record: its level, number, microseconds and flags, a semicolon, the text, and lines about the device.
func parse(line string) (record, bool) {
	head, text, ok := strings.Cut(line, ";")
	fields := strings.Split(head, ",")
	if !ok || len(fields) < 3 {
		return record{}, false
	}
	number, err := strconv.ParseUint(fields[1], 10, 64)
	micros, err2 := strconv.ParseInt(fields[2], 10, 64)
	text, _, _ = strings.Cut(text, "\n")
	return record{number, time.Duration(micros) * time.Microsecond, text}, err == nil && err2 == nil
}

// when is the time of day of a record.
func (r record) when() time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return clock.Now()
	}
	return clock.Now().Add(r.age - time.Duration(now.Nano()))
}

// killed is a process that was ended, its cgroup, and the one whose limit was reached: "/" for the machine's memory.
type killed struct {
	cgroup, limit, name string
	pid                 int
}

// The kernel says so since version 5.0.
var oomKill = regexp.MustCompile(`^oom-kill:constraint=.*?,(?:global_oom|oom_memcg=(.*)),task_memcg=(.*),task=(.*),pid=([0-9]+),uid=[0-9]+$`)

func (r record) killed() (killed, bool) {
	m := oomKill.FindStringSubmatch(r.text)
	if m == nil {
		return killed{}, false
	}
	pid, err := strconv.Atoi(m[4])
	if m[1] == "" {
		m[1] = "/"
	}
	return killed{cgroup: m[2], limit: m[1], name: m[3], pid: pid}, err == nil
}
