package scrape

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"
	"golang.org/x/sys/unix"

	"minik8s/internal/exposition"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/stats"
	"minik8s/internal/kubelet/stats/storage"
)

// Machine writes the page of /metrics/node: what the dashboards for node-exporter (docs of
// github.com/prometheus/node_exporter) ask of a machine. What a kernel does not say is left out.
func Machine(page *exposition.Text) error {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return err
	}
	t := &machine{page}
	if err := t.processors(proc); err != nil {
		return err
	}
	t.memory()
	t.load(proc)
	t.fileSystems()
	t.disks()
	t.devices()
	t.sockets(proc)
	t.stalls(proc)
	t.system()
	return nil
}

// machine is a page about the machine.
type machine struct{ *exposition.Text }

// one is a family of a single sample.
func (t *machine) one(name, kind, help string, value float64) {
	t.Family(name, kind, help)
	t.Sample("", value, time.Time{})
}

func (t *machine) processors(proc procfs.FS) error {
	s, err := proc.Stat()
	if err != nil {
		return err
	}
	t.one("node_boot_time_seconds", exposition.Gauge, "Node boot time, in unixtime.", float64(s.BootTime))
	t.one("node_context_switches_total", exposition.Counter, "Total number of context switches.", float64(s.ContextSwitches))
	t.Family("node_cpu_guest_seconds_total", exposition.Counter, "Seconds the CPUs spent in guests (VMs) for each mode.")
	for cpu, x := range s.CPU {
		t.Sample(exposition.Labels("cpu", strconv.FormatInt(cpu, 10), "mode", "user"), x.Guest, time.Time{})
		t.Sample(exposition.Labels("cpu", strconv.FormatInt(cpu, 10), "mode", "nice"), x.GuestNice, time.Time{})
	}
	t.Family("node_cpu_seconds_total", exposition.Counter, "Seconds the CPUs spent in each mode.")
	for cpu, x := range s.CPU {
		for _, m := range []struct {
			mode  string
			value float64
		}{{"idle", x.Idle}, {"iowait", x.Iowait}, {"irq", x.IRQ}, {"nice", x.Nice}, {"softirq", x.SoftIRQ}, {"steal", x.Steal}, {"system", x.System}, {"user", x.User}} {
			t.Sample(exposition.Labels("cpu", strconv.FormatInt(cpu, 10), "mode", m.mode), m.value, time.Time{})
		}
	}
	t.one("node_forks_total", exposition.Counter, "Total number of forks.", float64(s.ProcessCreated))
	t.one("node_intr_total", exposition.Counter, "Total number of interrupts serviced.", float64(s.IRQTotal))
	t.one("node_procs_running", exposition.Gauge, "Number of processes in runnable state.", float64(s.ProcessesRunning))
	t.one("node_procs_blocked", exposition.Gauge, "Number of processes blocked waiting for I/O to complete.", float64(s.ProcessesBlocked))
	return nil
}

// memory has every line of /proc/meminfo, and what is asked for of /proc/vmstat.
func (t *machine) memory() {
	escape := strings.NewReplacer("(", "_", ")", "")
	for _, line := range lines("/proc/meminfo") { // "MemTotal:  24689112 kB"
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		n, err := strconv.ParseFloat(words[1], 64)
		if err != nil {
			continue
		}
		name := "node_memory_" + escape.Replace(strings.TrimSuffix(words[0], ":"))
		if len(words) > 2 {
			name, n = name+"_bytes", n*1024
		}
		t.one(name, exposition.Gauge, "Memory information field "+strings.TrimSuffix(words[0], ":")+".", n)
	}
	for _, line := range lines("/proc/vmstat") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "oom_kill", "pgfault", "pgmajfault", "pgpgin", "pgpgout", "pswpin", "pswpout":
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				t.one("node_vmstat_"+key, exposition.Untyped, "/proc/vmstat information field "+key+".", n)
			}
		}
	}
}

func lines(path string) []string {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func (t *machine) load(proc procfs.FS) {
	l, err := proc.LoadAvg()
	if err != nil {
		return
	}
	t.one("node_load1", exposition.Gauge, "1m load average.", l.Load1)
	t.one("node_load5", exposition.Gauge, "5m load average.", l.Load5)
	t.one("node_load15", exposition.Gauge, "15m load average.", l.Load15)
}

func (t *machine) fileSystems() {
	all := storage.Mounted()
	labels := make([]string, len(all))
	for i, f := range all {
		labels[i] = exposition.Labels("device", f.Device, "fstype", f.Type, "mountpoint", f.MountPoint)
	}
	for _, f := range []struct {
		name, help string
		value      func(*storage.FileSystem) uint64
	}{
		{"node_filesystem_avail_bytes", "Filesystem space available to non-root users in bytes.", func(s *storage.FileSystem) uint64 { return s.Available }},
		{"node_filesystem_files", "Filesystem total file nodes.", func(s *storage.FileSystem) uint64 { return s.Inodes }},
		{"node_filesystem_files_free", "Filesystem total free file nodes.", func(s *storage.FileSystem) uint64 { return s.InodesFree }},
		{"node_filesystem_free_bytes", "Filesystem free space in bytes.", func(s *storage.FileSystem) uint64 { return s.Free }},
		{"node_filesystem_readonly", "Filesystem read-only status.", func(s *storage.FileSystem) uint64 {
			if s.ReadOnly {
				return 1
			}
			return 0
		}},
		{"node_filesystem_size_bytes", "Filesystem size in bytes.", func(s *storage.FileSystem) uint64 { return s.Capacity }},
	} {
		t.Family(f.name, exposition.Gauge, f.help)
		for i := range all {
			t.Sample(labels[i], float64(f.value(&all[i])), time.Time{})
		}
	}
}

func (t *machine) disks() {
	fs, err := blockdevice.NewDefaultFS()
	if err != nil {
		return
	}
	all, err := fs.ProcDiskstats()
	if err != nil {
		return
	}
	const sector = 512
	for _, f := range []struct {
		name, help string
		value      func(*blockdevice.Diskstats) float64
	}{
		{"node_disk_io_time_seconds_total", "Total seconds spent doing I/Os.", func(d *blockdevice.Diskstats) float64 { return float64(d.IOsTotalTicks) / 1000 }},
		{"node_disk_io_time_weighted_seconds_total", "The weighted # of seconds spent doing I/Os.", func(d *blockdevice.Diskstats) float64 { return float64(d.WeightedIOTicks) / 1000 }},
		{"node_disk_read_bytes_total", "The total number of bytes read successfully.", func(d *blockdevice.Diskstats) float64 { return float64(d.ReadSectors) * sector }},
		{"node_disk_read_time_seconds_total", "The total number of seconds spent by all reads.", func(d *blockdevice.Diskstats) float64 { return float64(d.ReadTicks) / 1000 }},
		{"node_disk_reads_completed_total", "The total number of reads completed successfully.", func(d *blockdevice.Diskstats) float64 { return float64(d.ReadIOs) }},
		{"node_disk_write_time_seconds_total", "This is the total number of seconds spent by all writes.", func(d *blockdevice.Diskstats) float64 { return float64(d.WriteTicks) / 1000 }},
		{"node_disk_writes_completed_total", "The total number of writes completed successfully.", func(d *blockdevice.Diskstats) float64 { return float64(d.WriteIOs) }},
		{"node_disk_written_bytes_total", "The total number of bytes written successfully.", func(d *blockdevice.Diskstats) float64 { return float64(d.WriteSectors) * sector }},
	} {
		t.Family(f.name, exposition.Counter, f.help)
		for i := range all {
			if name := all[i].DeviceName; !strings.HasPrefix(name, "loop") && !strings.HasPrefix(name, "ram") {
				t.Sample(exposition.Labels("device", name), f.value(&all[i]), time.Time{})
			}
		}
	}
}

// devices has the machine's network devices.
func (t *machine) devices() {
	all, err := (&stats.Interfaces{Loopback: true}).Read()
	if err != nil {
		return
	}
	for _, f := range []struct {
		name  string
		value func(*cri.Network) uint64
	}{
		{"receive_bytes", func(n *cri.Network) uint64 { return n.Received }},
		{"receive_drop", func(n *cri.Network) uint64 { return n.DroppedIn }},
		{"receive_errs", func(n *cri.Network) uint64 { return n.ErrorsIn }},
		{"receive_packets", func(n *cri.Network) uint64 { return n.PacketsIn }},
		{"transmit_bytes", func(n *cri.Network) uint64 { return n.Sent }},
		{"transmit_drop", func(n *cri.Network) uint64 { return n.DroppedOut }},
		{"transmit_errs", func(n *cri.Network) uint64 { return n.ErrorsOut }},
		{"transmit_packets", func(n *cri.Network) uint64 { return n.PacketsOut }},
	} {
		t.Family("node_network_"+f.name+"_total", exposition.Counter, "Network device statistic "+f.name+".")
		for i := range all {
			t.Sample(exposition.Labels("device", all[i].Interface), float64(f.value(&all[i])), time.Time{})
		}
	}
}

func (t *machine) sockets(proc procfs.FS) {
	if s, err := proc.NetSockstat(); err == nil {
		if s.Used != nil {
			t.one("node_sockstat_sockets_used", exposition.Gauge, "Number of IPv4 sockets in use.", float64(*s.Used))
		}
		for _, p := range s.Protocols {
			t.one("node_sockstat_"+p.Protocol+"_inuse", exposition.Gauge, "Number of "+p.Protocol+" sockets in state inuse.", float64(p.InUse))
			if p.Protocol == "TCP" && p.Alloc != nil && p.TW != nil {
				t.one("node_sockstat_TCP_alloc", exposition.Gauge, "Number of TCP sockets in state alloc.", float64(*p.Alloc))
				t.one("node_sockstat_TCP_tw", exposition.Gauge, "Number of TCP sockets in state tw.", float64(*p.TW))
			}
		}
	}
	if list := strings.Fields(strings.Join(lines("/proc/sys/fs/file-nr"), " ")); len(list) == 3 {
		if n, err := strconv.ParseFloat(list[0], 64); err == nil {
			t.one("node_filefd_allocated", exposition.Gauge, "File descriptor statistics: allocated.", n)
		}
		if n, err := strconv.ParseFloat(list[2], 64); err == nil {
			t.one("node_filefd_maximum", exposition.Gauge, "File descriptor statistics: maximum.", n)
		}
	}
}

// stalls has the machine's pressure, where the kernel keeps it.
func (t *machine) stalls(proc procfs.FS) {
	for _, r := range []struct{ name, file string }{{"cpu", "cpu"}, {"memory", "memory"}, {"io", "io"}} {
		p, err := proc.PSIStatsForResource(r.file)
		if err != nil || p.Some == nil {
			continue
		}
		t.one("node_pressure_"+r.name+"_waiting_seconds_total", exposition.Counter, "Total time in seconds that processes have waited for "+r.name+".", micros(p.Some.Total))
		if p.Full != nil && r.name != "cpu" {
			t.one("node_pressure_"+r.name+"_stalled_seconds_total", exposition.Counter, "Total time in seconds no process could make progress due to "+r.name+" congestion.", micros(p.Full.Total))
		}
	}
}

func (t *machine) system() {
	t.one("node_time_seconds", exposition.Gauge, "System time in seconds since epoch (1970).", float64(time.Now().UnixMilli())/1000)
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return
	}
	t.Family("node_uname_info", exposition.Gauge, "Labeled system information as provided by the uname system call.")
	t.Sample(exposition.Labels("domainname", unix.ByteSliceToString(u.Domainname[:]), "machine", unix.ByteSliceToString(u.Machine[:]), "nodename", unix.ByteSliceToString(u.Nodename[:]),
		"release", unix.ByteSliceToString(u.Release[:]), "sysname", unix.ByteSliceToString(u.Sysname[:]), "version", unix.ByteSliceToString(u.Version[:])), 1, time.Time{})
}
