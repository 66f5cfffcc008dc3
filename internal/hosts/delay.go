package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Delay has every packet from and to the host be so long on its way; 0 ends it. The kernel here has no netem, so a wire of
// our own takes the place of the plug in the bridge.
func (h *Host) Delay(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("a delay of %s: it cannot be negative", d)
	}
	if h.wire == nil {
		if d == 0 {
			return nil
		}
		if h.lossy || len(h.parted) > 0 {
			return errors.New("a host is delayed before it is cut, parted or loses packets: their rules are for the bridge's port, which a delay replaces")
		}
		w := &wire{}
		if err := h.lab.hub.do(func() error { return w.open(h.link, "slow-"+h.link) }); err != nil {
			return fmt.Errorf("%s: a slow wire: %w", h.Name, err)
		}
		h.wire, h.port = w, "slow-"+h.link
	}
	h.wire.delay.Store(int64(d))
	return nil
}

// wire carries frames between a link and the bridge that it was a port of, each after a while.
type wire struct {
	delay atomic.Int64 // nanoseconds
	tap   *os.File     // the bridge's side
	link  *os.File     // a packet socket on the link
	ends  sync.WaitGroup
}

// open puts the wire between a link and its bridge; name is the bridge's new port.
func (w *wire) open(link, name string) (err error) {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return err
	}
	br, err := netlink.LinkByIndex(l.Attrs().MasterIndex)
	if err != nil {
		return err
	}
	if w.tap, err = openTap(name); err != nil {
		return err
	}
	if w.link, err = openLink(l.Attrs().Index); err != nil {
		return errors.Join(err, w.tap.Close())
	}
	tap, err := netlink.LinkByName(name)
	if err != nil {
		return errors.Join(err, w.tap.Close(), w.link.Close())
	}
	// The router's stack must not answer on the link itself, in the name of the bridge, or the wire would be passed by.
	if err := errors.Join(netlink.LinkSetARPOff(l), netlink.LinkSetNoMaster(l), netlink.LinkSetMaster(tap, br), netlink.LinkSetUp(tap)); err != nil {
		return errors.Join(err, w.tap.Close(), w.link.Close())
	}
	w.ends.Go(func() { w.carry(w.link, w.tap) })
	w.ends.Go(func() { w.carry(w.tap, w.link) })
	return nil
}

func (w *wire) close() error {
	err := errors.Join(w.tap.Close(), w.link.Close())
	w.ends.Wait()
	return err
}

// frame is on its way.
type frame struct {
	due  time.Time
	data []byte
}

// inFlight is how many frames are on their way at most; more are lost.
const inFlight = 10_000

// carry brings frames from one end to the other until the ends are closed. Frames keep their order. Before each one stands
// what the kernel has left to do (virtio_net_hdr): its checksum, and its division where it is larger than the MTU.
func (w *wire) carry(from, to *os.File) {
	frames := make(chan frame, inFlight)
	w.ends.Go(func() {
		for f := range frames {
			time.Sleep(time.Until(f.due))
			to.Write(f.data) //nolint:errcheck // a network may lose it
		}
	})
	defer close(frames)
	buf := make([]byte, 80<<10)
	for {
		n, err := from.Read(buf)
		if err != nil && !errors.Is(err, unix.ENETDOWN) {
			return
		}
		select {
		case frames <- frame{time.Now().Add(time.Duration(w.delay.Load())), append([]byte(nil), buf[:n]...)}:
		default:
		}
	}
}

// openTap makes a network device whose frames are read and written by the file.
func openTap(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openLink reads what arrives on a link, and sends by it.
func openLink(index int) (*os.File, error) {
	all := uint16(unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8) // in the network's order of bytes
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index}))
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "link"), nil
}

// stepDelay is the step "delay NAME DURATION".
func (p *play) stepDelay(_ context.Context, args []string) error {
	if len(args) != 2 {
		return errWords
	}
	h, err := p.named(args[0])
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	return h.Delay(d)
}
