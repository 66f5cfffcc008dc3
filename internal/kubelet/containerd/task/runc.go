package task

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// runc is the program that makes containers, and where it keeps what it knows of them.
type runc struct {
	program string
	root    string // of one of containerd's namespaces
}

// dir is where runc keeps what it knows of a container.
func (r runc) dir(id string) string { return filepath.Join(r.root, id) }

// args is a command line of runc, which writes its errors to a file in dir.
func (r runc) args(dir string, command ...string) []string {
	return append([]string{r.program, "--root", r.root, "--log", filepath.Join(dir, "log.json"), "--log-format", "json"}, command...)
}

// run runs runc for what is asked for rarely.
func (r runc) run(ctx context.Context, command ...string) error {
	cmd := exec.CommandContext(ctx, r.program, append([]string{"--root", r.root}, command...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("runc %s: %w: %s", command[0], err, out)
	}
	return nil
}

// saidError is the last error in runc's log in dir; empty if there is none.
func saidError(dir string) (text string) {
	f, err := os.Open(filepath.Join(dir, "log.json"))
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var entry struct{ Level, Msg string }
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Level == "error" {
			text = entry.Msg
		}
	}
	return text
}

// cgroups are the directories of a container's cgroup, as runc knows them; none if it does not.
func (r runc) cgroups(id string) (dirs []string) {
	data, err := os.ReadFile(filepath.Join(r.dir(id), "state.json"))
	if err != nil {
		return nil
	}
	var state struct {
		Paths map[string]string `json:"cgroup_paths"`
	}
	if json.Unmarshal(data, &state) != nil {
		return nil
	}
	for _, dir := range state.Paths {
		dirs = append(dirs, dir)
	}
	return dirs
}

// gate is the named pipe at which a container's process waits until it may run its program: until it is opened for reading. Its
// keeper does that, as "runc start" would, and removes the name.
func (r runc) gate(id string) string { return filepath.Join(r.dir(id), "exec.fifo") }

// waiting reports whether a container's process has not been let through the gate.
func (r runc) waiting(id string) bool {
	_, err := os.Stat(r.gate(id))
	return err == nil
}
