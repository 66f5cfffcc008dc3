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
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	for _, r := range cleanRanges(string(smaps)) {
		if err := r.drop(r.file == self); err != nil {
			return err
		}
	}
	return nil
}

// addresses is a range of memory, and the file that it maps.
type addresses struct {
	start, end uintptr
	file       string
}

// drop drops a range's pages. fixed: the range maps this file as long as the process lives. A database is mapped anew when it grows, and by now
// its old range may be somebody else's memory: the kernel is only asked to page it out, which loses nothing then.
func (r addresses) drop(fixed bool) error {
	advice := uintptr(unix.MADV_PAGEOUT)
	if fixed {
		advice = unix.MADV_DONTNEED
	}
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, r.start, r.end-r.start, advice)
	if errno == 0 || !fixed && (errno == unix.ENOMEM || errno == unix.EINVAL) { // it is not mapped any more; or its pages are locked
		return nil
	}
	return errno
}

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
			if r = (addresses{start: uintptr(start), end: uintptr(end)}); candidate {
				r.file = f[5]
			}
		case candidate && len(f) == 3 && f[0] == "Anonymous:":
			if f[1] == "0" {
				out = append(out, r)
			}
			candidate = false
		}
	}
	return out
}
