package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"minik8s/internal/disk"
)

// state is the content of the state file.
type state struct {
	// Sysctls are the host's settings as they were before the first change, by their path below /proc/sys.
	Sysctls map[string]string `json:"sysctls"`
}

func (h *Host) readState() (state, error) {
	st := state{Sysctls: map[string]string{}}
	data, err := os.ReadFile(h.stateFile)
	if h.stateFile == "" || errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &st)
	}
	if err != nil {
		return st, fmt.Errorf("%s: %w", h.stateFile, err)
	}
	return st, nil
}

// writeState replaces the state file as a whole.
func (h *Host) writeState(st state) error {
	data, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return disk.WriteFile(h.stateFile, data, 0o600)
}

// Set changes a setting of the host, after saving its value in the state file.
func (h *Host) Set(key, value string) error {
	have, err := Sysctl(key)
	if err != nil || have == value {
		return err
	}
	if h.stateFile != "" {
		st, err := h.readState()
		if err != nil {
			return err
		}
		if _, known := st.Sysctls[key]; !known {
			st.Sysctls[key] = have
			if err := h.writeState(st); err != nil {
				return err
			}
		}
	}
	return SetSysctl(key, value)
}

// Forget gives the changed settings their original values, if restore says so, and removes the state file.
func (h *Host) Forget(restore bool) error {
	st, err := h.readState()
	if err != nil || len(st.Sysctls) == 0 {
		return err
	}
	var errs []error
	for key, value := range st.Sysctls {
		if restore {
			errs = append(errs, SetSysctl(key, value))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.Remove(h.stateFile)
}

// Harden keeps a pod from influencing the host's network through its link: no IPv6, because router advertisements
// would change the host's routes, and no packets with a source that is not behind the link (rp_filter). The settings
// belong to the link and are removed with it.
func Harden(link string) error {
	// /proc/sys/net shows the network namespace of the opening thread, and the caller's thread is in a pod's.
	done := make(chan error, 1)
	go func() {
		var errs []error
		for _, s := range [][2]string{
			{"ipv6/conf/" + link + "/disable_ipv6", "1"}, {"ipv6/conf/" + link + "/accept_ra", "0"},
			{"ipv6/conf/" + link + "/autoconf", "0"}, {"ipv6/conf/" + link + "/accept_redirects", "0"},
			{"ipv4/conf/" + link + "/rp_filter", "1"}, {"ipv4/conf/" + link + "/route_localnet", "0"},
		} {
			err := SetSysctl("net/"+s[0], s[1])
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

// Sysctl is a setting, by its path below /proc/sys. Of those of net/ it is that of the calling thread's namespace.
func Sysctl(key string) (string, error) {
	data, err := os.ReadFile("/proc/sys/" + key)
	return strings.TrimSpace(string(data)), err
}

// SetSysctl changes a setting without saving what it was.
func SetSysctl(key, value string) error {
	if err := os.WriteFile("/proc/sys/"+key, []byte(value), 0); err != nil {
		return fmt.Errorf("sysctl %s=%s: %w", key, value, err)
	}
	return nil
}
