package hosts

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// clusterDNS is where every machine with pods answers DNS questions, by the default range of Services.
const clusterDNS = "10.96.0.10:53"

// expectPage is "expect page URL from NAME [at HOST] answer WORD".
func (p *play) expectPage(ctx context.Context, args []string) error {
	at := ""
	if len(args) == 7 && args[3] == "at" {
		h, err := p.named(args[4])
		if err != nil {
			return err
		}
		at = h.Address.String()
		args = append(append([]string{}, args[:3]...), args[5:]...)
	}
	if len(args) != 5 || args[1] != "from" || args[3] != "answer" {
		return errWords
	}
	got, err := "", error(nil)
	if h := p.lab.Host(args[2]); h != nil {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		got, err = h.page(ctx, args[0], at)
	} else if at == "" {
		got, err = p.shell(args[2], "wget -qO- "+args[0])
	} else {
		u, uerr := url.Parse(args[0])
		if uerr != nil {
			return uerr
		}
		name := u.Host
		u.Host = at
		got, err = p.shell(args[2], fmt.Sprintf("wget -qO- --header 'Host: %s' %s", name, u))
	}
	if err != nil {
		return err
	}
	if !strings.HasPrefix(got, args[4]) {
		return fmt.Errorf("it answers %q", got)
	}
	return nil
}

// page is what a URL answers to this host, which asks the cluster's DNS here for the name, or goes to an address.
func (h *Host) page(ctx context.Context, where, at string) (string, error) {
	names := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return h.dial(ctx, network, clusterDNS)
	}}
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
		name, port, err := net.SplitHostPort(to)
		if err != nil {
			return nil, err
		}
		addr := at
		if addr == "" {
			found, err := names.LookupHost(ctx, name+".")
			if err != nil {
				return nil, err
			}
			addr = found[0]
		}
		return h.dial(ctx, network, net.JoinHostPort(addr, port))
	}}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return fmt.Sprintf("%d: %s", resp.StatusCode, body), err
	}
	return strings.TrimSpace(string(body)), err
}
