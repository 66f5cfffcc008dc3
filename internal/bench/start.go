package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

type m = map[string]any

func pod(name, image string, command ...string) m {
	c := m{"name": "c", "image": image, "imagePullPolicy": "IfNotPresent"}
	if len(command) > 0 {
		c["command"] = command
	}
	return m{"apiVersion": "v1", "kind": "Pod", "metadata": m{"name": name},
		"spec": m{"containers": []m{c}, "terminationGracePeriodSeconds": 5}}
}

const podsPath = "/api/v1/namespaces/default/pods"

// start measures the time from exec on an empty directory until the node is Ready, and until a pod has a node.
func start(r *report) error {
	var nodes, scheduled samples
	for range 5 {
		n, s, err := startOnce()
		if err != nil {
			return err
		}
		nodes, scheduled = append(nodes, n), append(scheduled, s)
	}
	bound := "etcd's first start: fsyncs and an election"
	r.add("empty directory to node Ready, p50", ms(nodes.p(50)), "ms", "<= 600 ms", bound)
	r.add("empty directory to a pod scheduled, p50", ms(scheduled.p(50)), "ms", "<= 600 ms", bound)
	return nil
}

func startOnce() (node, scheduled time.Duration, err error) {
	d, err := startDaemon(false)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		if serr := d.stop(); err == nil {
			err = serr
		}
	}()
	err = d.until(30*time.Second, func() bool {
		var list struct {
			Items []struct {
				Status struct {
					Conditions []struct{ Type, Status string }
				}
			}
		}
		if d.do("GET", "/api/v1/nodes", nil, &list) != nil {
			return false
		}
		for _, n := range list.Items {
			for _, c := range n.Status.Conditions {
				if c.Type == "Ready" && c.Status == "True" {
					return true
				}
			}
		}
		return false
	})
	node = time.Since(d.began)
	if err != nil {
		return 0, 0, err
	}
	posted := false
	err = d.until(30*time.Second, func() bool {
		if !posted {
			posted = d.do("POST", podsPath, pod("first", "busybox", "true"), nil) == nil
			return false
		}
		var p struct{ Spec struct{ NodeName string } }
		return d.do("GET", podsPath+"/first", nil, &p) == nil && p.Spec.NodeName != ""
	})
	return node, time.Since(d.began), err
}

// idle measures what the daemon and all its processes use with nothing to do.
func idle(r *report) error {
	d, err := startDaemon(true)
	if err != nil {
		return err
	}
	err = d.ready()
	if err == nil {
		time.Sleep(20 * time.Second) // until memory from the start has been returned
		pss, anon, n := memory(d)
		r.add("memory at idle (PSS of everything)", pss/1024, "MiB", "<= 48 MiB", fmt.Sprintf("%d processes", n))
		r.add("memory at idle, anonymous", anon/1024, "MiB", "<= 32 MiB", "Go's heap of etcd, containerd and us")
		const window = 30 * time.Second
		before := cpu(d)
		time.Sleep(window)
		used := cpu(d) - before
		r.add("CPU at idle", 100*used/window.Seconds(), "%", "<= 0.5 %", "of a core; clock ticks of 10 ms")
	}
	if serr := d.stop(); err == nil {
		err = serr
	}
	return err
}

// processes returns a daemon's processes: itself, and those that run from its directory.
func processes(dir string, pid int) []string {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var out []string
	for _, p := range dirs {
		exe, err := os.Readlink(p + "/exe")
		if err != nil {
			continue
		}
		if strings.HasPrefix(exe, dir) || filepath.Base(p) == strconv.Itoa(pid) {
			out = append(out, p)
		}
	}
	return out
}

// memory returns the proportional and the anonymous size in KiB.
func memory(d *daemon) (pss, anon float64, n int) { return memoryOf(d.dir, d.cmd.Process.Pid) }

func memoryOf(dir string, pid int) (pss, anon float64, n int) {
	for _, p := range processes(dir, pid) {
		f, err := os.Open(p + "/smaps_rollup")
		if err != nil {
			continue
		}
		n++
		for sc := bufio.NewScanner(f); sc.Scan(); {
			fields := strings.Fields(sc.Text())
			if len(fields) < 2 {
				continue
			}
			v, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				continue
			}
			switch fields[0] {
			case "Pss:":
				pss += v
			case "Anonymous:":
				anon += v
			}
		}
		f.Close() //nolint:errcheck // it was only read
	}
	return pss, anon, n
}

// cpu returns the seconds of processor time used so far.
func cpu(d *daemon) float64 { return cpuUsed(d.dir, d.cmd.Process.Pid) }

// cpuUsed is that of the daemon of a directory and its processes.
func cpuUsed(dir string, pid int) float64 {
	var used float64
	for _, p := range processes(dir, pid) {
		b, err := os.ReadFile(p + "/stat")
		if err != nil {
			continue
		}
		used += cpuIn(b)
	}
	return used
}

// cpuIn is the CPU time in a /proc/PID/stat, in seconds.
func cpuIn(stat []byte) float64 {
	_, rest, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	ticks := 0.0
	for _, s := range f[11:13] { // utime and stime
		if v, err := strconv.ParseFloat(s, 64); err == nil {
			ticks += v
		}
	}
	return ticks / 100
}
