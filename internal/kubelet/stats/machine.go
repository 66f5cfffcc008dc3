package stats

import (
	"github.com/prometheus/procfs"

	"minik8s/internal/kubelet/cgroup"
	"minik8s/internal/kubelet/cri"
)

// whole reads the machine.
type whole struct{ interfaces Interfaces }

// read reads what all of the machine uses.
func (w *whole) read(s *Sample) (err error) {
	if err := usage(&s.Usage); err != nil {
		return err
	}
	s.Interfaces, err = w.interfaces.Read()
	return err
}

// usage is what is not of the network. The memory is /proc's, as in runc: the root cgroup of v2 has no number of its own,
// and v1's leaves out the kernel.
func usage(u *cri.Usage) error {
	r := cgroup.NewReader(cgroup.Mounted, cgroup.Unified())
	r.Read(machine, u)
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return err
	}
	m, err := proc.Meminfo()
	if err != nil {
		return err
	}
	bytes := func(kib *uint64) uint64 {
		if kib == nil {
			return 0
		}
		return *kib << 10
	}
	u.Memory = bytes(m.MemTotal) - bytes(m.MemFree)
	u.WorkingSet = u.Memory - min(u.Memory, bytes(m.InactiveFile))
	u.RSS, u.Cache, u.Mapped = bytes(m.AnonPages), bytes(m.Cached), bytes(m.Mapped)
	u.Swap = bytes(m.SwapTotal) - bytes(m.SwapFree)
	return nil
}
