package work

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/bench/bed"
	"minik8s/internal/slurm/slurmtest"
)

const (
	gpuJobsPath  = "/apis/minik8s.io/v1/namespaces/default/gpujobs"
	gpuEnds      = 40
	gpuStarts    = 20
	gpuTracked   = 1000
	gpuResult    = 1 << 30
	gpuListening = 60 * time.Second
)

// GPU measures GPU jobs on a real Slurm with its login node on this machine.
func GPU(r *bed.Report) (err error) {
	var t standIn
	defer t.end()
	defer func() {
		if s, ok := recover().(stopped); ok {
			fmt.Fprintln(os.Stderr, "bench: gpu is left out: "+s.why)
		}
	}()
	s := slurmtest.Start(&t, slurmtest.Options{ThisNetwork: true})
	return bed.WithDaemon(false, func(d *bed.Daemon) error {
		objects := []any{
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login"}, Data: map[string][]byte{corev1.SSHAuthPrivateKey: s.Key}},
			&minik8s.SlurmCluster{ObjectMeta: metav1.ObjectMeta{Name: "default"},
				Spec: minik8s.SlurmClusterSpec{SSHHost: minik8s.SSHHost{Host: "127.0.0.1", User: s.User, LoginSecret: "login", HostKeys: []string{s.HostKey}}}},
		}
		for i, path := range []string{"/api/v1/namespaces/default/secrets", "/apis/minik8s.io/v1/namespaces/default/slurmclusters"} {
			if err := d.Do("POST", path, objects[i], nil); err != nil {
				return err
			}
		}
		for _, f := range []func(*bed.Report, *bed.Daemon, *slurmtest.Cluster) error{gpuEnd, gpuStart, gpuBack, gpuCalls} {
			if err := f(r, d, s); err != nil {
				return err
			}
		}
		return nil
	})
}

func gpuSubmit(d *bed.Daemon, name string, spec minik8s.GpuJobSpec) error {
	j := &minik8s.GpuJob{TypeMeta: metav1.TypeMeta{APIVersion: "minik8s.io/v1", Kind: "GpuJob"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	return d.Do("POST", gpuJobsPath, j, nil)
}

// gpuAwait polls a job until a condition holds, and returns it.
func gpuAwait(d *bed.Daemon, name string, limit time.Duration, ok func(*minik8s.GpuJobStatus) bool) (j minik8s.GpuJob, err error) {
	var last error
	err = d.Until(limit, func() bool {
		j = minik8s.GpuJob{}
		last = d.Do("GET", gpuJobsPath+"/"+name, nil, &j)
		if last == nil && ok(&j.Status) {
			return true
		}
		time.Sleep(10 * time.Millisecond) // asking must not take the processor from what is waited for
		return false
	})
	if err != nil {
		err = errors.Join(fmt.Errorf("%s: %+v", name, j.Status), last, err)
	}
	return j, err
}

func gpuHas(kind string) func(*minik8s.GpuJobStatus) bool {
	return func(s *minik8s.GpuJobStatus) bool {
		return slices.ContainsFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == kind && c.Status == metav1.ConditionTrue })
	}
}

// gpuEnd is the time from a program's end to the end in the API, of jobs that end at any moment.
func gpuEnd(r *bed.Report, d *bed.Daemon, s *slurmtest.Cluster) error {
	var took []time.Duration
	for i := range gpuEnds {
		name := fmt.Sprintf("end-%d", i)
		err := gpuSubmit(d, name, minik8s.GpuJobSpec{RunScripts: []string{fmt.Sprintf("sleep 0.%02d", (i*37)%100), "date +%s%N >~/" + name}})
		if err != nil {
			return err
		}
		if _, err := gpuAwait(d, name, 30*time.Second, gpuHas(minik8s.GpuJobComplete)); err != nil {
			return err
		}
		now := time.Now()
		text, err := os.ReadFile(filepath.Join(s.Home, name))
		if err != nil {
			return err
		}
		ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return err
		}
		took = append(took, now.Sub(time.Unix(0, ns)))
	}
	slices.Sort(took)
	r.Add("GPU job: its end to Completed, p50", took[len(took)/2].Seconds(), "s", "<= 1", "marks are read once a second")
	r.Add("  p99", took[len(took)*99/100].Seconds(), "s", "<= 3", "")
	return nil
}

// gpuStart is the time from the POST of a manifest with 1 MiB of sources until sbatch has taken the job, as the API says.
func gpuStart(r *bed.Report, d *bed.Daemon, _ *slurmtest.Cluster) error {
	var took []time.Duration
	source := minik8s.GpuJobSources{Files: []minik8s.GpuJobFile{{Path: "source", Content: strings.Repeat("0123456789abcde\n", 1<<16)}}}
	for i := range gpuStarts {
		name, began := fmt.Sprintf("start-%d", i), time.Now()
		if err := gpuSubmit(d, name, minik8s.GpuJobSpec{Sources: source, RunScripts: []string{"true"}}); err != nil {
			return err
		}
		if _, err := gpuAwait(d, name, 30*time.Second, gpuHas(minik8s.GpuJobSubmitted)); err != nil {
			return err
		}
		took = append(took, time.Since(began))
		if _, err := gpuAwait(d, name, 30*time.Second, gpuHas(minik8s.GpuJobResultsReady)); err != nil {
			return err
		}
	}
	slices.Sort(took)
	r.Add("GPU job: manifest to submitted, 1 MiB of sources, p50", 1000*took[len(took)/2].Seconds(), "ms", "<= 300", "")
	r.Add("  p99", 1000*took[len(took)*99/100].Seconds(), "ms", "", "")
	return nil
}

// gpuBack compares how a large result comes back with the program sftp on the same link.
func gpuBack(r *bed.Report, d *bed.Daemon, s *slurmtest.Cluster) error {
	err := gpuSubmit(d, "big", minik8s.GpuJobSpec{RunScripts: []string{fmt.Sprintf("head -c %d /dev/urandom >big.bin", gpuResult)}, Results: []string{"big.bin"}, Cleanup: minik8s.CleanupNever})
	if err != nil {
		return err
	}
	if _, err := gpuAwait(d, "big", 2*time.Minute, gpuHas(minik8s.GpuJobComplete)); err != nil {
		return err
	}
	began := time.Now()
	j, err := gpuAwait(d, "big", 5*time.Minute, gpuHas(minik8s.GpuJobResultsReady))
	if err != nil {
		return err
	}
	ours := time.Since(began)
	dir, err := os.MkdirTemp("", "minik8s-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the bench's own
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, s.Key, 0o600); err != nil {
		return err
	}
	began = time.Now()
	out, err := exec.Command("sftp", "-q", "-i", key, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile="+dir+"/known",
		s.User+"@127.0.0.1:"+j.Status.Folder+"/files/big.bin", dir+"/big.bin").CombinedOutput()
	if err != nil {
		return fmt.Errorf("sftp: %w %s", err, out)
	}
	theirs := time.Since(began)
	r.Add("GPU job: result of 1 GiB back, against sftp", theirs.Seconds()/ours.Seconds(), "x", ">= 0.9",
		fmt.Sprintf("%.0f and %.0f MiB/s; ours with checksums of both ends, and synced", 1024/ours.Seconds(), 1024/theirs.Seconds()))
	return d.Do("DELETE", gpuJobsPath+"/big", nil, nil)
}

// gpuCalls counts what Slurm's controller is asked while one job, and while many are tracked.
func gpuCalls(r *bed.Report, d *bed.Daemon, s *slurmtest.Cluster) error {
	asked := func() int { return s.Calls("squeue") + s.Calls("sacct") + s.Calls("sinfo") + s.Calls("scontrol") }
	tracked := func(n int) error {
		for i := range n {
			if err := gpuSubmit(d, fmt.Sprintf("many-%d-%d", n, i), minik8s.GpuJobSpec{RunScripts: []string{"sleep 3600"}, GPUsPerNode: 1}); err != nil {
				return err
			}
		}
		for i := range n {
			if _, err := gpuAwait(d, fmt.Sprintf("many-%d-%d", n, i), 5*time.Minute, gpuHas(minik8s.GpuJobSubmitted)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, n := range []int{1, gpuTracked} {
		began := time.Now()
		if err := tracked(n); err != nil {
			return err
		}
		if n > 1 {
			r.Add(fmt.Sprintf("GPU jobs: %d at once, all submitted", n), time.Since(began).Seconds(), "s", "", fmt.Sprintf("%d calls of sbatch", s.Calls("sbatch")))
		}
		before, used := asked(), bed.CPU(d)
		time.Sleep(gpuListening)
		r.Add(fmt.Sprintf("GPU jobs: controller calls a minute, %d tracked", n), float64(asked()-before)*time.Minute.Seconds()/gpuListening.Seconds(), "", "<= 4", "")
		r.Add("  the daemon's CPU meanwhile", 100*(bed.CPU(d)-used)/gpuListening.Seconds(), "%", "", "of a core")
	}
	return nil
}
