package roles

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"minik8s/config"
)

// loopback is where the API is on every machine for those on it: on a master the API itself, on a worker the balancer
// before all masters. The API's certificate has this address.
const loopback = "127.0.0.1"

// ownAPI is the URL of the API for those on this machine.
func (d *Daemon) ownAPI() string {
	return "https://" + net.JoinHostPort(loopback, strconv.Itoa(d.cfg.APIPort))
}

// openPorts opens the ports of the daemon's roles. The daemon does so before anything else, so that it notices a port in
// use before it creates a data directory or touches a pod.
func (d *Daemon) openPorts() (err error) {
	if d.cfg.Has(config.Master) {
		if d.listener, err = listen("the API's address", "api-port", d.cfg.APIAddress, d.cfg.APIPort); err != nil {
			return err
		}
	} else if d.listener, err = listen("the address of the API on this machine", "api-port", loopback, d.cfg.APIPort); err != nil {
		return err
	}
	if d.cfg.Has(config.Worker) {
		if d.kubeletListener, err = listen("the kubelet's address", "kubelet-port", d.kubeletAddress(), d.cfg.KubeletPort); err != nil {
			return err
		}
		d.kubeletPort = portOf(d.kubeletListener)
	}
	return nil
}

// listen opens a port. what names it, and flag chooses another one.
func listen(what, flag, address string, port int) (*net.TCPListener, error) {
	at := net.JoinHostPort(address, strconv.Itoa(port))
	l, err := net.Listen("tcp", at)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s %s is in use by another program: stop it or choose another --%s", what, at, flag)
	case err != nil:
		return nil, fmt.Errorf("%s %s cannot be used: %w", what, at, err)
	}
	return l.(*net.TCPListener), nil
}

// announcedAPI is where other machines reach this master's API; empty on a worker, and if it listens on the loopback only.
func (d *Daemon) announcedAPI() string {
	if !d.cfg.Has(config.Master) {
		return ""
	}
	at := d.cfg.NodeIP
	if a, err := netip.ParseAddr(d.cfg.APIAddress); err == nil && !a.IsUnspecified() {
		at = a
	}
	if at.IsLoopback() {
		return ""
	}
	return netip.AddrPortFrom(at, uint16(d.cfg.APIPort)).String()
}

// portOf is the port of a listener.
func portOf(l net.Listener) int {
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}
