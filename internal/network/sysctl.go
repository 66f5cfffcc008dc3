package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"minik8s/internal/disk"
)

// state is the content of the state file.
type state struct {
	// Sysctls are the host's settings as they were before the first change, by their path below /proc/sys.
	Sysctls map[string]string `json:"sysctls"`
}

func (n *Network) readState() (state, error) {
	st := state{Sysctls: map[string]string{}}
	data, err := os.ReadFile(n.cfg.StateFile)
	if n.cfg.StateFile == "" || errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &st)
	}
	if err != nil {
		return st, fmt.Errorf("%s: %w", n.cfg.StateFile, err)
	}
	return st, nil
}

// writeState replaces the state file as a whole.
func (n *Network) writeState(st state) error {
	data, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return disk.WriteFile(n.cfg.StateFile, data, 0o600)
}

// changeSysctl changes a setting of the host, after saving its value in the state file.
func (n *Network) changeSysctl(key, value string) error {
	have, err := readSysctl(key)
	if err != nil || have == value {
		return err
	}
	if n.cfg.StateFile != "" {
		st, err := n.readState()
		if err != nil {
			return err
		}
		if _, known := st.Sysctls[key]; !known {
			st.Sysctls[key] = have
			if err := n.writeState(st); err != nil {
				return err
			}
		}
	}
	return writeSysctl(key, value)
}

// restoreSysctls restores the changed settings, unless another daemon on this host needs them.
func (n *Network) restoreSysctls() error {
	st, err := n.readState()
	if err != nil || len(st.Sysctls) == 0 {
		return err
	}
	others, err := n.nf.Chains(tables)
	if err != nil {
		return err
	}
	var errs []error
	for key, value := range st.Sysctls {
		if len(others) == 0 {
			errs = append(errs, writeSysctl(key, value))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.Remove(n.cfg.StateFile)
}

// undoRouteLocalnet undoes what earlier versions did: they set route_localnet for the whole host, with a chain named
// guard to protect loopback addresses.
func (n *Network) undoRouteLocalnet() error {
	have, err := n.nf.Chains(n.TableName())
	if err != nil || !slices.Contains(have[n.TableName()], "guard") {
		return err
	}
	return writeSysctl("net/ipv4/conf/all/route_localnet", "0")
}

// hardenLink keeps a pod from influencing the host's network through its link: no IPv6, because router advertisements
// would change the host's routes, and no packets with a source that is not behind the link (rp_filter). The settings
// belong to the link and are removed with it.
func hardenLink(link string) error {
	// /proc/sys/net shows the network namespace of the opening thread, and the caller's thread is in a pod's.
	done := make(chan error, 1)
	go func() {
		var errs []error
		for _, s := range [][2]string{
			{"ipv6/conf/" + link + "/disable_ipv6", "1"}, {"ipv6/conf/" + link + "/accept_ra", "0"},
			{"ipv6/conf/" + link + "/autoconf", "0"}, {"ipv6/conf/" + link + "/accept_redirects", "0"},
			{"ipv4/conf/" + link + "/rp_filter", "1"}, {"ipv4/conf/" + link + "/route_localnet", "0"},
		} {
			err := writeSysctl("net/"+s[0], s[1])
			if strings.HasPrefix(s[0], "ipv6/") && errors.Is(err, fs.ErrNotExist) {
				continue // a kernel without IPv6
			}
			errs = append(errs, err)
		}
		done <- errors.Join(errs...)
	}()
	if err := <-done; err != nil {
		return fmt.Errorf("network: %w", err)
	}
	return nil
}

func readSysctl(key string) (string, error) {
	data, err := os.ReadFile("/proc/sys/" + key)
	return strings.TrimSpace(string(data)), err
}

func writeSysctl(key, value string) error {
	if err := os.WriteFile("/proc/sys/"+key, []byte(value), 0); err != nil {
		return fmt.Errorf("sysctl %s=%s: %w", key, value, err)
	}
	return nil
}
