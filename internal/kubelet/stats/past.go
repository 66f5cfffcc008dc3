package stats

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"time"

	"minik8s/internal/kubelet/cri"
)

// past is the newest samples of one thing. It has the newest one as it is, and for each one before it a record of what is
// different there: ten bytes where nothing happens and 50 where much does, instead of 200. There are as many samples as
// records and one, but for the zero value, which has none.
type past struct {
	last   *Sample
	device string // the interface of the network, which stays the same
	// interfaces are the machine's, in the samples that have records; empty where there were none.
	interfaces [][]cri.Network
	lengths    []uint16 // of the records, the oldest first
	records    []byte
}

// numbers is a sample as numbers: the time in nanoseconds, what it has of has, and all that is counted.
type numbers [2 + counted]uint64

const counted = 53

// What a sample may lack.
const (
	hasPressure = 1 << iota
	hasNetwork
)

// places are where a sample's counts are.
func places(u *cri.Usage, p *cri.Pressure, n *cri.Network) [counted]*uint64 {
	a, b, c, d, e, f := &p.CPU.Some, &p.CPU.Full, &p.Memory.Some, &p.Memory.Full, &p.IO.Some, &p.IO.Full
	return [...]*uint64{&u.CPU, &u.UserCPU, &u.SystemCPU, &u.Memory, &u.WorkingSet, &u.RSS, &u.Cache, &u.Mapped, &u.Swap, &u.Faults, &u.MajorFaults,
		&u.Periods, &u.ThrottledPeriods, &u.Throttled, &u.Peak, &u.OOMKills, &u.Processes, &u.ReadBytes, &u.WrittenBytes, &u.ReadCalls, &u.WriteCalls,
		&a.Total, &b.Total, &c.Total, &d.Total, &e.Total, &f.Total, &a.Avg10, &b.Avg10, &c.Avg10, &d.Avg10, &e.Avg10, &f.Avg10,
		&a.Avg60, &b.Avg60, &c.Avg60, &d.Avg60, &e.Avg60, &f.Avg60, &a.Avg300, &b.Avg300, &c.Avg300, &d.Avg300, &e.Avg300, &f.Avg300,
		&n.Received, &n.Sent, &n.PacketsIn, &n.PacketsOut, &n.ErrorsIn, &n.ErrorsOut, &n.DroppedIn, &n.DroppedOut}
}

func numbersOf(s *Sample) *numbers {
	out := &numbers{uint64(s.Time.UnixNano())}
	p, n := s.Pressure, s.Network
	if p != nil {
		out[1] |= hasPressure
	} else {
		p = &cri.Pressure{}
	}
	if n != nil {
		out[1] |= hasNetwork
	} else {
		n = &cri.Network{}
	}
	for i, at := range places(&s.Usage, p, n) {
		out[2+i] = *at
	}
	return out
}

// sample is the sample of these numbers, and of a network by this device.
func (x *numbers) sample(device string) Sample {
	s, p, n := Sample{Time: time.Unix(0, int64(x[0]))}, &cri.Pressure{}, &cri.Network{Interface: device}
	for i, at := range places(&s.Usage, p, n) {
		*at = x[2+i]
	}
	if x[1]&hasPressure != 0 {
		s.Pressure = p
	}
	if x[1]&hasNetwork != 0 {
		s.Network = n
	}
	return s
}

// add appends a sample, and drops some of the oldest if there are kept of them.
func (p *past) add(x Sample, kept int) {
	if p.last != nil && x.Time.Before(p.last.Time) { // the clock was set back
		*p = past{}
	}
	if p.last != nil {
		if len(p.lengths)+1 == kept {
			p.drop(1 + kept/4)
		}
		before := len(p.records)
		p.records = record(p.records, numbersOf(p.last), numbersOf(&x))
		p.lengths = append(p.lengths, uint16(len(p.records)-before))
		if missing := len(p.lengths) - 1 - len(p.interfaces); p.last.Interfaces != nil || len(p.interfaces) > 0 {
			p.interfaces = append(append(p.interfaces, make([][]cri.Network, missing)...), p.last.Interfaces)
		}
		if slices.Equal(p.last.Interfaces, x.Interfaces) {
			x.Interfaces = p.last.Interfaces
		}
	}
	if p.last = &x; x.Network != nil {
		p.device = x.Network.Interface
	}
}

func (p *past) drop(n int) {
	n = min(n, len(p.lengths))
	size := 0
	for _, l := range p.lengths[:n] {
		size += int(l)
	}
	p.records = append(p.records[:0], p.records[size:]...)
	p.lengths = append(p.lengths[:0], p.lengths[n:]...)
	p.interfaces = slices.Delete(p.interfaces, 0, min(n, len(p.interfaces)))
}

// record appends what leads from a sample back to the one before: which numbers are different, and by how much.
func record(to []byte, before, after *numbers) []byte {
	which := uint64(0)
	for i := range after {
		if after[i] != before[i] {
			which |= 1 << i
		}
	}
	to = binary.AppendUvarint(to, which)
	for i := range after {
		if after[i] != before[i] {
			to = binary.AppendVarint(to, int64(after[i]-before[i]))
		}
	}
	return to
}

// back goes from a sample back to the one before.
func (x *numbers) back(record []byte) {
	which, n := binary.Uvarint(record)
	for ; which != 0; which &= which - 1 {
		record = record[n:]
		var more int64
		more, n = binary.Varint(record)
		x[bits.TrailingZeros64(which)] -= uint64(more)
	}
}

// newest returns the newest samples, oldest first: at least one, and so many that enough, which is called with the number of
// them and the oldest, is content, or all.
func (p *past) newest(enough func(n int, oldest time.Time) bool) []Sample {
	out := []Sample{*p.last}
	if len(p.lengths) == 0 || enough(1, p.last.Time) {
		return out
	}
	x, end := numbersOf(p.last), len(p.records)
	for i := len(p.lengths) - 1; i >= 0 && !enough(len(out), out[len(out)-1].Time); i-- {
		begin := end - int(p.lengths[i])
		x.back(p.records[begin:end])
		s := x.sample(p.device)
		if i < len(p.interfaces) {
			s.Interfaces = p.interfaces[i]
		}
		out = append(out, s)
		end = begin
	}
	slices.Reverse(out)
	return out
}
