package minik8s

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// DNSTarget is where a path of a DNS object leads: a port of a Service, or of an address.
type DNSTarget struct {
	Service string     // a Service of the object's namespace; empty: it is Addr
	Addr    netip.Addr // valid if there is no Service
	Port    int32
}

// String is HOST:PORT.
func (t DNSTarget) String() string {
	if t.Service != "" {
		return t.Service + ":" + strconv.Itoa(int(t.Port))
	}
	return netip.AddrPortFrom(t.Addr, uint16(t.Port)).String() //nolint:gosec // ParseDNSAddress has checked it
}

// Target is where a path leads. The error says what is wrong with an address; a path that was stored has none.
func (p *DNSPath) Target() (DNSTarget, error) {
	if p.Service != nil {
		return DNSTarget{Service: p.Service.Name, Port: p.Service.Port}, nil
	}
	return ParseDNSAddress(p.Address)
}

// CleanPath is the path without slashes at its end; "/" is itself. Two paths of an object that are the same then are one.
func (p *DNSPath) CleanPath() string {
	if clean := strings.TrimRight(p.Path, "/"); clean != "" {
		return clean
	}
	return "/"
}

// httpPort is the port of an address without one.
const httpPort = 80

var errAddressForm = errors.New("expected http://HOST or http://HOST:PORT, where HOST is an IP address or the name of a Service of the same namespace")

// ParseDNSAddress reads the address of a path. Whether a Service can have the name that it has is not checked.
func ParseDNSAddress(address string) (DNSTarget, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" {
		return DNSTarget{}, errAddressForm
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Path != "" && u.Path != "/" {
		return DNSTarget{}, fmt.Errorf("%w, and nothing behind it: what follows the path in a request is added", errAddressForm)
	}
	t := DNSTarget{Port: httpPort}
	if text := u.Port(); text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return DNSTarget{}, fmt.Errorf("the port %s: expected a number from 1 to 65535", text)
		}
		t.Port = int32(n)
	} else if strings.HasSuffix(u.Host, ":") {
		return DNSTarget{}, errors.New("there is no port behind the colon: expected a number from 1 to 65535")
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		t.Addr = addr
	} else {
		t.Service = u.Hostname()
	}
	return t, nil
}
