package hosttest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Where is a namespace of a host: a pod's, or the host's own if Pod is empty; and an address for it to serve or reach.
type Where struct {
	Pod  string
	Addr string // with a port; for Ping without
	Size int    // bytes to send
	// Whole forbids to fragment what is sent.
	Whole   bool
	For     time.Duration // how long to send, or to wait for an answer; 0: two seconds
	Connect int           // how many connections to make
}

func (w Where) patience() time.Duration {
	if w.For == 0 {
		return 2 * time.Second
	}
	return w.For
}

// Serve answers TCP connections and UDP datagrams with the client's address and how many bytes came.
func (h *Host) Serve(w Where, _ *string) error {
	return h.in(w.Pod, func() error {
		l, err := net.Listen("tcp4", w.Addr)
		if err != nil {
			return err
		}
		c, err := net.ListenPacket("udp4", w.Addr)
		if err != nil {
			return errors.Join(err, l.Close())
		}
		go answerTCP(l)
		go answerUDP(c)
		return nil
	})
}

func answer(from net.Addr, n int64) string {
	return fmt.Sprintf("%s %d", netip.MustParseAddrPort(from.String()).Addr(), n)
}

func answerTCP(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()                              //nolint:errcheck // a test's connection
			n, _ := io.Copy(io.Discard, c)               //nolint:errcheck // as above
			io.WriteString(c, answer(c.RemoteAddr(), n)) //nolint:errcheck // as above
		}()
	}
}

func answerUDP(c net.PacketConn) {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		c.WriteTo([]byte(answer(from, int64(n))), from) //nolint:errcheck // as above
	}
}

// TCP sends to a server and is answered what it says.
func (h *Host) TCP(w Where, text *string) error {
	return h.in(w.Pod, func() error {
		c, err := net.DialTimeout("tcp4", w.Addr, w.patience())
		if err != nil {
			return err
		}
		defer c.Close() //nolint:errcheck // as above
		if err := c.SetDeadline(time.Now().Add(w.patience())); err != nil {
			return err
		}
		if _, err := c.Write(make([]byte, w.Size)); err != nil {
			return err
		}
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			return err
		}
		b, err := io.ReadAll(c)
		*text = string(b)
		return err
	})
}

// UDP sends a datagram to a server and is answered what it says.
func (h *Host) UDP(w Where, text *string) error {
	return h.in(w.Pod, func() error {
		c, err := net.Dial("udp4", w.Addr)
		if err != nil {
			return err
		}
		defer c.Close() //nolint:errcheck // as above
		if err := c.SetDeadline(time.Now().Add(w.patience())); err != nil {
			return err
		}
		if _, err := c.Write(make([]byte, w.Size)); err != nil {
			return err
		}
		b := make([]byte, 100)
		n, err := c.Read(b)
		*text = string(b[:n])
		return err
	})
}

// Ping sends an ICMP echo and waits for the answer. Where it must not be fragmented, it is sent again after the first
// router has said how much it takes.
func (h *Host) Ping(w Where, _ *string) error {
	return h.in(w.Pod, func() error {
		conn, err := net.Dial("ip4:icmp", w.Addr)
		if err != nil {
			return err
		}
		c := conn.(*net.IPConn)
		defer c.Close() //nolint:errcheck // as above
		if w.Whole {
			raw, err := c.SyscallConn()
			if err != nil {
				return err
			}
			if cerr := raw.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
			}); cerr != nil || err != nil {
				return errors.Join(cerr, err)
			}
		}
		if err := c.SetDeadline(time.Now().Add(w.patience())); err != nil {
			return err
		}
		echo := make([]byte, 8+w.Size) // the payload is zeros
		echo[0], echo[5], echo[7] = 8, byte(os.Getpid()), 1
		binary.BigEndian.PutUint16(echo[2:], ^(uint16(8)<<8 + uint16(echo[5]) + 1))
		if _, err := c.Write(echo); err != nil {
			return err
		}
		reply := make([]byte, 1<<16)
		for {
			n, _, err := c.ReadFromIP(reply)
			if err != nil {
				return err
			}
			if n == len(echo) && reply[0] == 0 && reply[5] == echo[5] {
				return nil
			}
		}
	})
}

// Send measures how many bytes per second a TCP connection to a server carries.
func (h *Host) Send(w Where, rate *float64) error {
	return h.in(w.Pod, func() error {
		c, err := net.DialTimeout("tcp4", w.Addr, w.patience())
		if err != nil {
			return err
		}
		defer c.Close() //nolint:errcheck // as above
		buf, sent, began := make([]byte, 128<<10), 0, time.Now()
		for time.Since(began) < w.patience() {
			n, err := c.Write(buf)
			if err != nil {
				return err
			}
			sent += n
		}
		*rate = float64(sent) / time.Since(began).Seconds()
		return nil
	})
}

// Stream sends datagrams to a server, one each millisecond, and is answered how many of them were not.
func (h *Host) Stream(w Where, lost *int) error {
	return h.in(w.Pod, func() error {
		c, err := net.Dial("udp4", w.Addr)
		if err != nil {
			return err
		}
		defer c.Close() //nolint:errcheck // as above
		answers := make(chan int)
		go func() {
			n, buf := 0, make([]byte, 100)
			for {
				if _, err := c.Read(buf); errors.Is(err, os.ErrDeadlineExceeded) {
					answers <- n
					return
				} else if err == nil {
					n++
				}
			}
		}()
		sent, tick := 0, time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for began := time.Now(); time.Since(began) < w.patience(); <-tick.C {
			if _, err := c.Write([]byte("x")); err == nil {
				sent++
			}
		}
		if err := c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil { // for the last answers
			return err
		}
		*lost = sent - <-answers
		return nil
	})
}

// Datagrams is how many UDP datagrams a pod has received.
func (h *Host) Datagrams(pod string, n *int) error {
	return h.in(pod, func() error {
		b, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(b)) {
			if _, err := fmt.Sscanf(line, "Udp: %d", n); err == nil {
				return nil
			}
		}
		return errors.New("no UDP in /proc/net/snmp")
	})
}

// Connects measures how long connecting to a server takes, several times.
func (h *Host) Connects(w Where, times *[]time.Duration) error {
	return h.in(w.Pod, func() error {
		for range w.Connect {
			began := time.Now()
			c, err := net.DialTimeout("tcp4", w.Addr, w.patience())
			if err != nil {
				return err
			}
			*times = append(*times, time.Since(began))
			if err := c.Close(); err != nil {
				return err
			}
		}
		return nil
	})
}
