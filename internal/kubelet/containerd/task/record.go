package task

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/containerd/runtime"
	"golang.org/x/sys/unix"
)

// readEnd reads the end that a keeper has written down; ok is false if it has not.
func readEnd(dir string) (end runtime.Exit, ok bool, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "exit"))
	if errors.Is(err, fs.ErrNotExist) {
		return end, false, nil
	}
	if err != nil {
		return end, false, err
	}
	return parseEnd(string(data))
}

// parseEnd parses "CODE SECONDS.NANOSECONDS", with spaces around it.
func parseEnd(text string) (end runtime.Exit, ok bool, err error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return end, false, nil
	}
	if len(words) == 2 {
		secs, nanos, _ := strings.Cut(words[1], ".")
		code, err1 := strconv.ParseUint(words[0], 10, 32)
		s, err2 := strconv.ParseInt(secs, 10, 64)
		n, err3 := strconv.ParseInt(nanos, 10, 64)
		if errors.Join(err1, err2, err3) == nil {
			return runtime.Exit{Status: uint32(code), Timestamp: time.Unix(s, n)}, true, nil
		}
	}
	return end, false, fmt.Errorf("%q is not an exit", text)
}

// keeperOf is the process that keeps a directory's; 0 if none does.
func keeperOf(dir string) (int, error) {
	f, err := os.Open(filepath.Join(dir, "exit"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil {
		return 0, err
	}
	if lock.Type == unix.F_UNLCK {
		return 0, nil
	}
	return int(lock.Pid), nil
}

// endKeeper kills the keeper of a directory, should it have one, and waits for its end. A runc that is still making the process
// is killed with it.
func endKeeper(dir string) error {
	pid, err := keeperOf(dir)
	if err != nil || pid <= 0 {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("keeper %d: %w", pid, err)
	}
	defer unix.Close(fd) //nolint:errcheck // it was only read
	if now, err := keeperOf(dir); err != nil || now != pid {
		return err // it has ended, and its number may be another's
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("keeper %d: %w", pid, err)
	}
	return awaitEnd(fd, killTimeout)
}

// killTimeout is how long a killed process may take to end.
const killTimeout = 10 * time.Second

// awaitEnd waits until the process of a pidfd has ended.
func awaitEnd(fd int, limit time.Duration) error {
	for end := time.Now().Add(limit); ; {
		left := time.Until(end)
		if left <= 0 {
			return errors.New("a process does not end on SIGKILL")
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
