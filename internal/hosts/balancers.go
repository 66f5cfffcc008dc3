package hosts

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

func (p *play) service(ctx context.Context, name string) (*corev1.Service, error) {
	c, err := p.api()
	if err != nil {
		return nil, err
	}
	return client.Get[*corev1.Service](ctx, c, client.Key{Kind: api.Services, Namespace: metav1.NamespaceDefault, Name: name})
}

// announcer is the ready node that answers for a load balancer's address, as the API says.
func (p *play) announcer(ctx context.Context, service string) (string, error) {
	svc, err := p.service(ctx, service)
	if err != nil {
		return "", err
	}
	name := svc.Annotations[api.AnnouncedByAnnotation]
	if err := p.expectNode(ctx, []string{name, "Ready"}); err != nil {
		return "", fmt.Errorf("%q does: %w", name, err)
	}
	return name, nil
}

// balancerAddress is the address that a load balancer has.
func balancerAddress(svc *corev1.Service) (netip.Addr, error) {
	if len(svc.Status.LoadBalancer.Ingress) == 0 {
		return netip.Addr{}, fmt.Errorf("service %s has no address", svc.Name)
	}
	return netip.ParseAddr(svc.Status.LoadBalancer.Ingress[0].IP)
}

// expectAnnounced is "expect announced SERVICE by NAME to HOST": who asks on its link who has the address gets one answer, that host's.
func (p *play) expectAnnounced(ctx context.Context, args []string) error {
	if len(args) != 5 || args[1] != "by" || args[3] != "to" {
		return errWords
	}
	svc, err := p.service(ctx, args[0])
	if err != nil {
		return err
	}
	at, err := balancerAddress(svc)
	if err != nil {
		return err
	}
	by, err := p.named(args[2])
	if err != nil {
		return err
	}
	asks, err := p.named(args[4])
	if err != nil {
		return err
	}
	want, err := by.hardware()
	if err != nil {
		return err
	}
	got, err := asks.whoHas(at)
	if err != nil {
		return err
	}
	if len(got) != 1 || got[0] != want {
		return fmt.Errorf("for %s answer %v, not %s alone", at, got, want)
	}
	return nil
}

// hardware is the host's hardware address.
func (h *Host) hardware() (out string, err error) {
	err = h.ns.do(func() error {
		eth0, err := net.InterfaceByName("eth0")
		if err == nil {
			out = eth0.HardwareAddr.String()
		}
		return err
	})
	return out, err
}

// answersWithin is how long machines may take to say that they have an address.
const answersWithin = 300 * time.Millisecond

// whoHas asks on the host's link who has an address, and returns the hardware addresses of all who answer.
func (h *Host) whoHas(a netip.Addr) (out []string, err error) {
	var f *os.File
	var frame []byte
	err = h.ns.do(func() error {
		eth0, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		f = os.NewFile(uintptr(fd), "arp")
		frame = request(eth0.HardwareAddr, h.Address, a)
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16([]byte{8, 6}), Ifindex: eth0.Index})
	})
	if f == nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is read
	if err == nil {
		err = f.SetReadDeadline(time.Now().Add(answersWithin))
	}
	if err == nil {
		_, err = f.Write(frame)
	}
	for buf := make([]byte, 256); err == nil; {
		var n int
		if n, err = f.Read(buf); err == nil && n >= 42 && buf[21] == 2 && [4]byte(buf[28:32]) == a.As4() {
			out = append(out, net.HardwareAddr(buf[22:28]).String())
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return out, err
}

// request is the frame that asks who has an address.
func request(own net.HardwareAddr, from, who netip.Addr) []byte {
	b := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, own...)
	b = append(b, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1)
	b = append(append(b, own...), from.AsSlice()...)
	return append(append(b, 0, 0, 0, 0, 0, 0), who.AsSlice()...)
}
