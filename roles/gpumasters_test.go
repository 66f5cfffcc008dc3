package roles_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/machine"
	"minik8s/internal/slurm/slurmtest"
	"minik8s/internal/store/external/externaltest"
)

// TestGpuJobsOnTwoMasters has one master answer for what the other has: the connection to the centre, and the results.
func TestGpuJobsOnTwoMasters(t *testing.T) {
	needRoot(t)
	etcd := externaltest.Start(t)
	outside := []string{"--etcd-servers=" + etcd.URL, "--etcd-cafile=" + etcd.CAFile, "--etcd-certfile=" + etcd.CertFile, "--etcd-keyfile=" + etcd.KeyFile}
	x := newCentre(t, slurmtest.Options{OneTime: 2}, append(outside, "--node-name=first")...)
	first := x.process
	line, err := first.command("ctl", "token", "create", "--role=master")
	token := regexp.MustCompile(`--token=\S+`).FindString(line)
	if err != nil || token == "" {
		t.Fatal(line, err)
	}
	second := newProcess(t, append(outside, "--role=master", "--api-port=6444", "--server=https://"+machine.Address+":6443", token, "--node-name=second")...)
	on := func(p *process, c client.Interface) *centre { return &centre{process: p, c: c, slurm: x.slurm} }
	y := on(second, second.up())
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	ctl := func(p *process, stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command(path, append([]string{"ctl", "--data-dir", p.dir}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v %s", args, err, out)
		}
		return string(out)
	}

	// A person logs in at the master that has no connections, and sends sources there.
	key := client.Key{Kind: api.SlurmClusters, Namespace: "default", Name: "centre"}
	x.must(x.c.Patch(context.Background(), key, client.Patch{Type: types.MergePatchType, Data: []byte(`{"spec":{"interactive":true,"loginSecret":null}}`)}, client.WriteOptions{}))
	if got := ctl(second, x.slurm.OneTimePasswords[0]+"\n", "gpu", "login", "centre"); !strings.Contains(got, "the connection stands") {
		t.Error(got)
	}
	y.submit("one", minik8s.GpuJobSpec{Sources: minik8s.GpuJobSources{Folder: "/nowhere"}, RunScripts: []string{"cat 'the words'", "until [ -e go ]; do sleep 0.2; done", "echo on >'100% ü'"}, Results: []string{"*"}})
	sources := t.TempDir()
	if err := os.WriteFile(filepath.Join(sources, "the words"), []byte("by both\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctl(second, "", "gpu", "push", "one", sources)
	y.state("one", "RUNNING")
	y.eventually("its log is read through the other master", func() bool { return y.read("one", "log") == "by both\n" })
	follow := exec.Command(path, "ctl", "--data-dir", second.dir, "logs", "-f", "gpujob/one")
	followed := make(chan string, 1)
	go func() {
		out, _ := follow.CombinedOutput() //nolint:errcheck // what it printed says enough
		followed <- string(out)
	}()
	x.slurm.Do("cd .minik8s/*/jobs/one.*/files && touch go")
	for _, z := range []*centre{x, y} {
		if s := z.back("one").Status; s.Results.Master != "first" {
			t.Errorf("%+v", s.Results)
		}
		if got := z.read("one", "files/100%25%20%C3%BC"); got != "on\n" {
			t.Errorf("a result: %q", got)
		}
	}
	if got := <-followed; got != "by both\n" {
		t.Errorf("followed: %q", got)
	}

	// The second leads: somebody has to log in there. Then each has results that the other does not have.
	first.kill()
	second.eventually("the second master leads", func() bool { return holder(y.c) == "second" })
	y.submit("two", minik8s.GpuJobSpec{RunScripts: []string{"echo two"}})
	y.eventually("somebody has to log in", func() bool {
		c := apimeta.FindStatusCondition(y.job("two").Status.Conditions, minik8s.GpuJobSubmitted)
		return c != nil && c.Reason == minik8s.SlurmLoginNeeded
	})
	if got := y.read("one", "files/100%25%20%C3%BC"); !strings.Contains(got, "first") || !strings.Contains(got, "503") {
		t.Errorf("results that nobody has at the moment: %s", got)
	}
	x = on(first, first.up())
	ctl(first, x.slurm.OneTimePasswords[1]+"\n", "gpu", "login", "centre")
	y.back("two")
	for _, z := range []*centre{x, y} {
		if got := z.read("two", "log") + z.read("one", "log"); got != "two\nby both\n" {
			t.Errorf("logs: %q", got)
		}
	}

	// A job that is deleted leaves nothing on the disk of a master that does not lead, either.
	at := filepath.Join(second.dir, "gpu", string(x.job("two").UID))
	kept := filepath.Join(first.dir, "gpu", string(x.job("one").UID))
	other := kept
	if holder(y.c) == "first" {
		other = at
	}
	name := map[string]string{at: "two", kept: "one"}[other]
	if _, err := os.Stat(other); err != nil {
		t.Fatal(err)
	}
	x.must(y.c.Delete(context.Background(), client.Key{Kind: api.GpuJobs, Namespace: "default", Name: name}, nil))
	y.eventually("the results of "+name+" are removed where they are", func() bool {
		_, err := os.Stat(other)
		return errors.Is(err, fs.ErrNotExist)
	})
}
