package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// trimShim pages the program of a waiting shim out of its memory. Nearly all of the program, 12 MB, is mapped while
// it starts, and none of it is used while it waits. The pages are read into the page cache again at once, so that the
// pod that gets this shim does not wait for a disk; the kernel can drop them from there.
func trimShim(pid int, program string) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("containerd: trim: %w", err)
	}
	defer unix.Close(fd)
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return fmt.Errorf("containerd: trim: %w", err)
	}
	for line := range strings.Lines(string(maps)) {
		// 00400000-00b1a000 r-xp 00000000 fd:00 1234   /path/of/the/program
		f := strings.Fields(line)
		if len(f) != 6 || f[5] != program || strings.Contains(f[1], "w") {
			continue
		}
		from, to, _ := strings.Cut(f[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 != nil || err2 != nil || end <= start {
			continue
		}
		// An iovec: address and length in the other process.
		vec := [2]uintptr{uintptr(start), uintptr(end - start)}
		_, _, errno := unix.Syscall6(unix.SYS_PROCESS_MADVISE, uintptr(fd), uintptr(unsafe.Pointer(&vec)), 1, unix.MADV_PAGEOUT, 0, 0)
		if errno != 0 {
			return fmt.Errorf("containerd: trim: %w", errno)
		}
	}
	f, err := os.Open(program)
	if err != nil {
		return fmt.Errorf("containerd: trim: %w", err)
	}
	defer f.Close()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_WILLNEED); err != nil {
		return fmt.Errorf("containerd: trim: %w", err)
	}
	return nil
}

// trim trims the shims of the sandboxes that wait.
func (p *Pool) trim() {
	p.warm.mu.Lock()
	ids := map[string]bool{}
	if p.warm.ctx != nil && p.warm.active == 0 {
		for _, s := range p.warm.ready {
			ids[s.ID] = true
		}
	}
	p.warm.mu.Unlock()
	if len(ids) == 0 || p.cfg.KeepShimPages || !p.cfg.Containerd.Embedded() {
		return
	}
	list, err := p.cfg.Containerd.Shims()
	for _, s := range list {
		if ids[s.ID] && !s.Helper && err == nil {
			err = trimShim(s.Pid, p.cfg.Containerd.Programs.Shim)
		}
	}
	if err != nil { // without process_madvise, for example; harmless
		p.cfg.Log.Debug("a shim that waits keeps its memory", "err", err)
	}
}
