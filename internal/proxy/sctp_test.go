package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// The chunks of SCTP (RFC 9260) that begin an association.
const (
	sctpInit    = 1
	sctpInitAck = 2
)

// sctpPacket is a packet with one of these chunks. The tag is that of the other end; an INIT has none.
func sctpPacket(from, to uint16, tag uint32, chunk byte) []byte {
	b := make([]byte, 12+20)
	binary.BigEndian.PutUint16(b, from)
	binary.BigEndian.PutUint16(b[2:], to)
	binary.BigEndian.PutUint32(b[4:], tag)
	b[12] = chunk
	binary.BigEndian.PutUint16(b[14:], 20)
	binary.BigEndian.PutUint32(b[16:], 7)     // our tag
	binary.BigEndian.PutUint32(b[20:], 65536) // window
	binary.BigEndian.PutUint16(b[24:], 1)     // streams out
	binary.BigEndian.PutUint16(b[26:], 1)     // and in
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// sctp is a raw socket, for kernels without SCTP of their own. It gets all SCTP packets of its namespace.
func (m *machineNS) sctp() net.PacketConn {
	m.t.Helper()
	var c net.PacketConn
	err := m.inside(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), "sctp")
		defer f.Close() //nolint:errcheck // FilePacketConn has one of its own
		c, err = net.FilePacketConn(f)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { c.Close() }) //nolint:errcheck // a test's
	return c
}

// receive waits for a packet with a chunk, and returns whose it is and its ports.
func receive(c net.PacketConn, chunk byte, until time.Time) (from string, source, dest uint16, err error) {
	if err := c.SetReadDeadline(until); err != nil {
		return "", 0, 0, err
	}
	for b := make([]byte, 1500); ; {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return "", 0, 0, err
		}
		if n >= 16 && b[12] == chunk { // the header of IP is not in it
			return from.String(), binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), nil
		}
	}
}

// Real SCTP packets reach the endpoints of a Service, in turn, at the port of the pod, and the answers come from the Service. The
// packets are made by hand, so this needs no SCTP of the kernel but that of its connection tracking.
func TestSCTP(t *testing.T) {
	h := newHost(t)
	a, b, client := h.pod(), h.pod(), h.pod()
	h.up()
	h.put(service("calls", "10.96.0.9", port(99, 0, corev1.ProtocolSCTP)), a.addr+"@", b.addr+"@")
	var mu sync.Mutex
	asked := map[uint16]string{} // by the client's port
	for _, m := range []*machineNS{a, b} {
		end := m.sctp()
		go func() {
			for {
				from, source, dest, err := receive(end, sctpInit, time.Time{})
				if err != nil {
					return // the test has ended
				}
				mu.Lock()
				asked[source] = fmt.Sprintf("%s at %d from %s", m.addr, dest, from)
				mu.Unlock()
				end.WriteTo(sctpPacket(dest, source, 7, sctpInitAck), &net.IPAddr{IP: net.ParseIP(from)}) //nolint:errcheck // it will be asked again
			}
		}()
	}
	mine := client.sctp()
	turns := map[string]int{}
	for i := range 4 {
		port := uint16(40000 + i)
		var from string
		var source, dest uint16
		err := os.ErrDeadlineExceeded
		for end := time.Now().Add(20 * time.Second); errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(end); { // as SCTP does: a link that has just come up may lose the first
			if _, err := mine.WriteTo(sctpPacket(port, 99, 0, sctpInit), &net.IPAddr{IP: net.IPv4(10, 96, 0, 9)}); err != nil {
				t.Fatal(err)
			}
			from, source, dest, err = receive(mine, sctpInitAck, time.Now().Add(time.Second))
		}
		if err != nil || from != "10.96.0.9" || source != 99 || dest != port {
			t.Fatalf("the answer is from %s, %d to %d: %v", from, source, dest, err)
		}
		mu.Lock()
		turns[asked[port]]++
		mu.Unlock()
	}
	for _, m := range []*machineNS{a, b} {
		if turns[fmt.Sprintf("%s at 8099 from %s", m.addr, client.addr)] != 2 {
			t.Errorf("turns: %v", turns)
		}
	}
}
