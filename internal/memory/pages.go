package memory

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dropFiles drops the clean pages of files from the process's memory: of this program's, and of the databases of etcd and
// containerd, which grow with what was in them once.
func dropFiles() error {
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	for _, r := range cleanRanges(string(smaps)) {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, r.start, r.end-r.start, unix.MADV_DONTNEED); errno != 0 {
			return errno
		}
	}
	return nil
}

// addresses is a range of memory.
type addresses struct{ start, end uintptr }

// cleanRanges are the mappings of files without any written page: they are not writable, and no page in them is
// anonymous. The second condition matters: a loader writes relocations before it makes their mapping read-only, and
// dropping those pages would bring back the file's unrelocated bytes.
func cleanRanges(smaps string) []addresses {
	var out []addresses
	var r addresses
	candidate := false
	for line := range strings.Lines(smaps) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 2 && strings.Contains(f[0], "-") && len(f[1]) == 4:
			candidate = len(f) >= 6 && strings.HasPrefix(f[5], "/") && f[1][1] != 'w'
			from, to, _ := strings.Cut(f[0], "-")
			start, err1 := strconv.ParseUint(from, 16, 64)
			end, err2 := strconv.ParseUint(to, 16, 64)
			candidate = candidate && err1 == nil && err2 == nil
			r = addresses{uintptr(start), uintptr(end)}
		case candidate && len(f) == 3 && f[0] == "Anonymous:":
			if f[1] == "0" {
				out = append(out, r)
			}
			candidate = false
		}
	}
	return out
}
