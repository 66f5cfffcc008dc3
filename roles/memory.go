package roles

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// settle is how long after the start its memory is given back: what start-up set going has ended by then.
const settle = 2 * time.Second

// giveBack returns what only start-up needed, once: the heap's free pages, and the pages of the program
// file that were read for code that will not run again. Those it does need come back from the page cache,
// one fault each.
func giveBack(ctx context.Context, log *slog.Logger) {
	t := time.NewTimer(settle)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return
	}
	debug.FreeOSMemory()
	if err := dropProgram(); err != nil {
		log.Debug("pages of the program could not be given back", "error", err)
	}
}

// dropProgram unmaps the clean pages of this program's own file from this process.
func dropProgram() error {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		// Only what cannot be written: a written page is no longer the file's.
		if len(f) < 6 || f[5] != exe || strings.Contains(f[1], "w") {
			continue
		}
		from, to, _ := strings.Cut(f[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 != nil || err2 != nil {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED); errno != 0 {
			return errno
		}
	}
	return nil
}
