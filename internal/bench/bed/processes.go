package bed

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// processes returns a daemon's processes: itself, and those that run from its directory.
func processes(dir string, pid int) []string {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var out []string
	for _, p := range dirs {
		exe, err := os.Readlink(p + "/exe")
		if err != nil {
			continue
		}
		if strings.HasPrefix(exe, dir) || filepath.Base(p) == strconv.Itoa(pid) {
			out = append(out, p)
		}
	}
	return out
}

// Memory returns the proportional and the anonymous size in KiB.
func Memory(d *Daemon) (pss, anon float64, n int) { return MemoryOf(d.Dir, d.Cmd.Process.Pid) }

// MemoryOf is that of the daemon of a directory and its processes.
func MemoryOf(dir string, pid int) (pss, anon float64, n int) {
	for _, p := range processes(dir, pid) {
		f, err := os.Open(p + "/smaps_rollup")
		if err != nil {
			continue
		}
		n++
		for sc := bufio.NewScanner(f); sc.Scan(); {
			fields := strings.Fields(sc.Text())
			if len(fields) < 2 {
				continue
			}
			v, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				continue
			}
			switch fields[0] {
			case "Pss:":
				pss += v
			case "Anonymous:":
				anon += v
			}
		}
		f.Close() //nolint:errcheck // it was only read
	}
	return pss, anon, n
}

// CPU returns the seconds of processor time used so far.
func CPU(d *Daemon) float64 { return CPUOf(d.Dir, d.Cmd.Process.Pid) }

// CPUOf is that of the daemon of a directory and its processes.
func CPUOf(dir string, pid int) float64 {
	var used float64
	for _, p := range processes(dir, pid) {
		b, err := os.ReadFile(p + "/stat")
		if err != nil {
			continue
		}
		used += CPUIn(b)
	}
	return used
}

// CPUIn is the CPU time in a /proc/PID/stat, in seconds.
func CPUIn(stat []byte) float64 {
	_, rest, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	ticks := 0.0
	for _, s := range f[11:13] { // utime and stime
		if v, err := strconv.ParseFloat(s, 64); err == nil {
			ticks += v
		}
	}
	return ticks / 100
}

// Settled is the time after the start when everything that is done only once is done.
const Settled = 12 * time.Second
