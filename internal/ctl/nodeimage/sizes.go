package nodeimage

import (
	"fmt"
	"io"
	"strings"
)

// meter is a reader that reports how much has been read.
type meter struct {
	io.Reader
	done int64
	told int64
	tell func(done int64)
}

// tellEvery is the number of bytes between two reports of a meter.
const tellEvery = 1 << 20

// Read reads and counts.
func (m *meter) Read(b []byte) (int, error) {
	n, err := m.Reader.Read(b)
	m.done += int64(n)
	if m.done-m.told >= tellEvery || (err != nil && m.done > m.told) {
		m.told = m.done
		m.tell(m.done)
	}
	return n, err
}

// portion returns progress as text: "12.0 MiB of 40.1 MiB (30 %)".
func portion(done, total int64) string {
	if total <= 0 {
		return bytesOf(done)
	}
	return fmt.Sprintf("%s of %s (%d %%)", bytesOf(done), bytesOf(total), done*100/total)
}

// bytesOf returns a size as text.
func bytesOf(n int64) string {
	const step = 1024
	if n < step {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/step, 0
	for value >= step && unit < 3 {
		value /= step
		unit++
	}
	return fmt.Sprintf("%.1f %s", value, []string{"KiB", "MiB", "GiB", "TiB"}[unit])
}

// shortID returns the beginning of a digest, which is enough to compare images by eye.
func shortID(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	if len(id) > 12 {
		return id[:12]
	}
	return id
}
