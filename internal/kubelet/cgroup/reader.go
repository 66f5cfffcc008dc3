package cgroup

import (
	"bytes"
	"math"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/cri"
)

// Mounted is where cgroups are mounted.
const Mounted = "/sys/fs/cgroup"

// Unified reports whether v2 is what is mounted there.
func Unified() bool {
	var st unix.Statfs_t
	return unix.Statfs(Mounted, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

// Reader reads what cgroups use. It reads hundreds of files in a row, so it has one buffer for all of them and goes to
// the kernel directly: a third of the time of os.ReadFile. It may not be used concurrently.
type Reader struct {
	root string
	v2   bool
	seen *Seen
	buf  [16 << 10]byte // the longest file, memory.stat, has 2 to 4 KiB
}

// NewReader returns a reader of the cgroups below root, which is Mounted but for tests. With v1, root has a directory
// for each controller.
func NewReader(root string, v2 bool) *Reader {
	return &Reader{root: root, v2: v2, seen: NewSeen()}
}

// Read reads what a cgroup uses. ok is false if it does not exist (any more): then u has to be dropped.
func (r *Reader) Read(path string, u *cri.Usage) (ok bool) {
	now := time.Now()
	if r.v2 {
		dir := filepath.Join(r.root, path)
		ok = r.unifiedCPU(dir, u) && r.unifiedMemory(dir, u)
		if ok || path == "/" { // the root has no memory.current, and has the rest
			r.unifiedRest(dir, u)
		}
	} else {
		ok = r.legacyCPU(path, u) && r.legacyCore(path, u) && r.legacyRest(path, u)
	}
	if ok = ok && r.there(path); ok {
		r.seen.remember(path, u, now) // what is read in short after this must not be older
	}
	return ok
}

// ReadCore reads all but Usage.Rest, which takes a third of the time. Of Rest it may read a part.
//
// While a cgroup uses no CPU its processes do nothing, and so the kernel counts nothing new of it, but that it may take
// pages of files back. So of an idle cgroup only the counter of CPU time is read, and all else is what was read last, for
// as long as stale at most. That is a quarter of the work, and most of what runs on a machine is idle most of the time.
func (r *Reader) ReadCore(path string, u *cri.Usage) (ok bool) {
	cpu, core, where := r.legacyCPU, r.legacyCore, path
	if r.v2 {
		cpu, core, where = r.unifiedCPU, r.unifiedMemory, filepath.Join(r.root, path)
	}
	if !cpu(where, u) {
		r.seen.forget(path)
		return false
	}
	now := time.Now()
	if r.seen.idle(path, u, now) {
		return true
	}
	if !core(where, u) || !r.there(path) {
		r.seen.forget(path)
		return false
	}
	r.seen.remember(path, u, now)
	return true
}

// there reports whether a cgroup still is: of one that was removed while it was read, a part of the files is missing, and
// their counts would go backwards.
func (r *Reader) there(path string) bool {
	if r.v2 {
		return unix.Access(filepath.Join(r.root, path), unix.F_OK) == nil
	}
	for _, controller := range [...]string{"cpuacct", "memory"} { // those that every machine has
		if unix.Access(filepath.Join(r.root, controller, path), unix.F_OK) != nil {
			return false
		}
	}
	return true
}

// unifiedCPU reads a cgroup of v2, as do the next ones: Linux, Documentation/admin-guide/cgroup-v2.rst.
func (r *Reader) unifiedCPU(dir string, u *cri.Usage) bool {
	stat := r.file(dir, "cpu.stat")
	if stat == nil {
		return false
	}
	fields(stat, func(key []byte, n uint64) {
		switch string(key) {
		case "usage_usec":
			u.CPU = n * 1000
		case "user_usec":
			u.UserCPU = n * 1000
		case "system_usec":
			u.SystemCPU = n * 1000
		case "nr_periods":
			u.Periods = n
		case "nr_throttled":
			u.ThrottledPeriods = n
		case "throttled_usec":
			u.Throttled = n * 1000
		}
	})
	return true
}

func (r *Reader) unifiedMemory(dir string, u *cri.Usage) bool {
	used, ok := number(r.file(dir, "memory.current"))
	inactive := uint64(0)
	fields(r.file(dir, "memory.stat"), func(key []byte, n uint64) {
		switch string(key) {
		case "anon":
			u.RSS = n
		case "file":
			u.Cache = n
		case "file_mapped":
			u.Mapped = n
		case "inactive_file":
			inactive = n
		case "pgfault":
			u.Faults = n
		case "pgmajfault":
			u.MajorFaults = n
		}
	})
	u.Memory, u.WorkingSet = used, used-min(inactive, used)
	u.Swap, _ = number(r.file(dir, "memory.swap.current"))
	return ok
}

// unifiedRest reads what is rarely asked for.
func (r *Reader) unifiedRest(dir string, u *cri.Usage) {
	u.Peak, _ = number(r.file(dir, "memory.peak")) // since Linux 5.19
	fields(r.file(dir, "memory.events"), func(key []byte, n uint64) {
		if string(key) == "oom_kill" {
			u.OOMKills = n
		}
	})
	u.Processes, _ = number(r.file(dir, "pids.current"))
	for line := range bytes.Lines(r.file(dir, "io.stat")) { // "8:0 rbytes=1 wbytes=2 rios=3 wios=4 ..."
		for word := range bytes.FieldsSeq(line) {
			key, value, _ := bytes.Cut(word, []byte("="))
			n, _ := number(value)
			switch string(key) {
			case "rbytes":
				u.ReadBytes += n
			case "wbytes":
				u.WrittenBytes += n
			case "rios":
				u.ReadCalls += n
			case "wios":
				u.WriteCalls += n
			}
		}
	}
	u.Pressure = r.pressure(dir)
}

// pressure is nil where the kernel does not keep it.
func (r *Reader) pressure(dir string) *cri.Pressure {
	p := &cri.Pressure{}
	for _, x := range []struct {
		file string
		to   *cri.Stall
	}{{"cpu.pressure", &p.CPU}, {"memory.pressure", &p.Memory}, {"io.pressure", &p.IO}} {
		data := r.file(dir, x.file)
		if data == nil {
			return nil
		}
		for line := range bytes.Lines(data) { // "some avg10=0.00 avg60=0.00 avg300=0.00 total=0"
			to := &x.to.Full
			if bytes.HasPrefix(line, []byte("some")) {
				to = &x.to.Some
			}
			for word := range bytes.FieldsSeq(line) {
				key, value, _ := bytes.Cut(word, []byte("="))
				switch string(key) {
				case "avg10":
					to.Avg10 = hundredths(value)
				case "avg60":
					to.Avg60 = hundredths(value)
				case "avg300":
					to.Avg300 = hundredths(value)
				case "total":
					to.Total, _ = number(value)
				}
			}
		}
	}
	return p
}

// hundredths reads a number as the kernel writes averages, with two digits behind the point.
func hundredths(text []byte) uint64 {
	whole, rest, _ := bytes.Cut(text, []byte("."))
	n, _ := number(whole)
	h, _ := number(rest)
	return n*100 + h
}

// tick is what programs see of the kernel's, whatever it is: 10 ms.
const tick = 10_000_000

// legacyCPU reads a cgroup of v1, as do the next ones: Linux, Documentation/admin-guide/cgroup-v1.
func (r *Reader) legacyCPU(path string, u *cri.Usage) (ok bool) {
	u.CPU, ok = number(r.file(filepath.Join(r.root, "cpuacct", path), "cpuacct.usage"))
	return ok
}

func (r *Reader) legacyCore(path string, u *cri.Usage) bool {
	fields(r.file(filepath.Join(r.root, "cpuacct", path), "cpuacct.stat"), func(key []byte, n uint64) {
		switch string(key) {
		case "user":
			u.UserCPU = n * tick
		case "system":
			u.SystemCPU = n * tick
		}
	})
	dir := filepath.Join(r.root, "memory", path)
	used, ok := number(r.file(dir, "memory.usage_in_bytes"))
	inactive := uint64(0)
	fields(r.file(dir, "memory.stat"), func(key []byte, n uint64) {
		switch string(key) {
		case "total_rss":
			u.RSS = n
		case "total_cache":
			u.Cache = n
		case "total_mapped_file":
			u.Mapped = n
		case "total_swap":
			u.Swap = n
		case "total_inactive_file":
			inactive = n
		case "total_pgfault":
			u.Faults = n
		case "total_pgmajfault":
			u.MajorFaults = n
		}
	})
	u.Memory, u.WorkingSet = used, used-min(inactive, used)
	return ok
}

// legacyRest reads what is rarely asked for. It is true.
func (r *Reader) legacyRest(path string, u *cri.Usage) bool {
	fields(r.file(filepath.Join(r.root, "cpu", path), "cpu.stat"), func(key []byte, n uint64) {
		switch string(key) {
		case "nr_periods":
			u.Periods = n
		case "nr_throttled":
			u.ThrottledPeriods = n
		case "throttled_time":
			u.Throttled = n
		}
	})
	dir := filepath.Join(r.root, "memory", path)
	u.Peak, _ = number(r.file(dir, "memory.max_usage_in_bytes"))
	fields(r.file(dir, "memory.oom_control"), func(key []byte, n uint64) {
		if string(key) == "oom_kill" {
			u.OOMKills = n
		}
	})
	u.Processes, _ = number(r.file(filepath.Join(r.root, "pids", path), "pids.current"))
	dir = filepath.Join(r.root, "blkio", path)
	u.ReadBytes, u.WrittenBytes = reads(r.file(dir, "blkio.throttle.io_service_bytes_recursive"))
	u.ReadCalls, u.WriteCalls = reads(r.file(dir, "blkio.throttle.io_serviced_recursive"))
	return true
}

// reads sums the lines "8:0 Read 1" and "8:0 Write 2" of all devices.
func reads(data []byte) (read, written uint64) {
	for line := range bytes.Lines(data) {
		_, rest, _ := bytes.Cut(line, []byte(" "))
		fields(rest, func(key []byte, n uint64) {
			switch string(key) {
			case "Read":
				read += n
			case "Write":
				written += n
			}
		})
	}
	return read, written
}

// file returns the content of a file, nil if there is none. It is valid until the next call.
func (r *Reader) file(dir, name string) []byte {
	fd, err := unix.Open(dir+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd) //nolint:errcheck // it was only read
	for {
		n, err := unix.Read(fd, r.buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil
		}
		return r.buf[:n]
	}
}

// fields calls f with each line's key and number.
func fields(data []byte, f func(key []byte, n uint64)) {
	for line := range bytes.Lines(data) {
		key, value, ok := bytes.Cut(line, []byte(" "))
		if !ok {
			continue
		}
		if n, ok := number(value); ok {
			f(key, n)
		}
	}
}

// number reads a number with space around it.
func number(data []byte) (n uint64, ok bool) {
	data = bytes.TrimSpace(data)
	for _, c := range data {
		if c < '0' || c > '9' || n > math.MaxUint64/10-1 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, len(data) > 0
}
