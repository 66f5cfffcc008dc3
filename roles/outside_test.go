package roles_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/machine"
	"minik8s/internal/store"
	"minik8s/internal/store/external"
	"minik8s/internal/store/external/externaltest"
)

// command runs minik8sd with the data directory of a process.
func (p *process) command(args ...string) (string, error) {
	p.t.Helper()
	path, err := built()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "MINIK8S_DATA_DIR="+p.dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// without are arguments but for those that begin with a prefix.
func without(args []string, prefix string) (out []string) {
	for _, a := range args {
		if !strings.HasPrefix(a, prefix) {
			out = append(out, a)
		}
	}
	return out
}

func holder(c client.Interface) string {
	l, err := client.Get[*coordinationv1.Lease](context.Background(), c, masterLease)
	if err != nil || l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// A cluster in an etcd that others run, over TLS: it works, through a restart of etcd and a kill of the daemon; a second
// master serves beside the first and leads when that is killed. What is etcd's operator's is said to be, and no second
// cluster is made by mistake.
func TestExternalEtcd(t *testing.T) {
	needRoot(t)
	server := externaltest.Start(t)
	etcd := []string{"--etcd-servers=" + server.URL, "--etcd-cafile=" + server.CAFile, "--etcd-certfile=" + server.CertFile, "--etcd-keyfile=" + server.KeyFile}
	p := newProcess(t, append(etcd, "--node-name=first")...)
	c := p.up()
	p.deploy(c, "web")
	before := pods(c, "web")[0].Status.ContainerStatuses[0].ContainerID

	server.Kill()
	server.Start()
	p.make(c, configMap("after-etcd")) // no error, though the connection was lost

	p.kill()
	c = p.up()
	p.leader(c, "first", 0)
	if now := pods(c, "web"); len(now) != 1 || now[0].Status.ContainerStatuses[0].ContainerID != before {
		t.Errorf("another container after the daemon was killed: %+v", now)
	}

	for says, args := range map[string][]string{"etcdctl member list": {"etcd", "members"}, "etcdctl member remove": {"etcd", "remove", "x"}} {
		if out, err := p.command(append([]string{"ctl"}, args...)...); err == nil || !strings.Contains(out, says) || !strings.Contains(out, server.URL) {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	file := filepath.Join(t.TempDir(), "s.db")
	if out, err := p.command("ctl", "etcd", "snapshot", file); err != nil {
		t.Errorf("snapshot: %v: %s", err, out)
	}
	line, err := p.command("ctl", "token", "create", "--role=master")
	token := regexp.MustCompile(`--token=\S+`).FindString(line)
	if err != nil || token == "" {
		t.Fatal(line, err)
	}

	join := []string{"--role=master", "--api-port=6444", "--server=https://" + machine.Address + ":6443", token}
	q := newProcess(t, append(join, "--node-name=second")...)
	q.fails("give --etcd-servers as on the other masters")
	q.args = append(q.args, etcd...)
	q.args = append(q.args, "--etcd-prefix=/elsewhere")
	q.fails("give --etcd-prefix=/minik8s")
	q.args = without(q.args, "--etcd-prefix")
	d := q.up()
	p.make(c, configMap("from-first"))
	if _, err := client.Get[*corev1.ConfigMap](context.Background(), d, client.Key{Kind: api.ConfigMaps, Namespace: "default", Name: "from-first"}); err != nil {
		t.Errorf("the second master does not have what the first has acknowledged: %v", err)
	}
	p.leader(d, "first", 0)
	p.kill()
	q.eventually("the second master leads", func() bool { return holder(d) == "second" })
	q.eventually("scheduled by the second", func() bool { return len(pods(d, "web")) == 1 && q.isScheduled(d, "new") })
	q.stop()

	// Mistakes that would make another cluster, or lose this one.
	stranger := newProcess(t, append(etcd, "--node-name=stranger")...)
	stranger.fails("another cluster below /minik8s")
	args := p.args
	p.args = without(args, "--etcd-")
	p.fails("this machine's cluster is in the etcd at " + server.URL)
	p.args = append(without(args, "--etcd-prefix"), "--etcd-prefix=/elsewhere")
	p.fails("has no cluster below /elsewhere")
	if out, err := p.command("ctl", "etcd", "restore", file, "--data-dir", p.dir); err == nil || !strings.Contains(out, "put a snapshot back there") {
		t.Errorf("restore: %v: %s", err, out)
	}
	p.args = args
	c = p.up()
	p.eventually("the first leads again", func() bool { return holder(c) == "first" })
}

// A first start that is killed while it makes the cluster: nothing else is made by a start without the flags, and the next
// one with them goes on.
func TestExternalEtcdKilledFirst(t *testing.T) {
	needRoot(t)
	server := externaltest.New(t)
	server.Quota = 2 << 20
	server.Start()
	tls := external.Config{Servers: []string{server.URL}, Prefix: "/other", Cluster: "other", New: true, CAFile: server.CAFile, CertFile: server.CertFile,
		KeyFile: server.KeyFile, Log: slog.New(slog.DiscardHandler)}
	other, err := external.Open(t.Context(), tls)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for n := 0; err == nil; n++ { // a full etcd can be read, and takes no new cluster
		_, err = other.Write(t.Context(), store.Create(fmt.Sprint("/", n), make([]byte, 100<<10)))
	}
	if !errors.Is(err, store.ErrNoSpace) {
		t.Fatal(err)
	}
	p := newProcess(t, "--etcd-servers="+server.URL, "--etcd-cafile="+server.CAFile, "--etcd-certfile="+server.CertFile, "--etcd-keyfile="+server.KeyFile)
	p.start()
	note := filepath.Join(p.dir, "etcd", "outside")
	p.eventually("it makes the cluster", func() bool { _, err := os.Stat(note); return err == nil })
	p.kill()
	args := p.args
	p.args = without(args, "--etcd-")
	p.fails("this machine's cluster is in the etcd at " + server.URL)
	server.Kill()
	server.Wipe()
	server.Quota = 0
	server.Start()
	p.args = args
	p.make(p.up(), configMap("made"))
	p.stop()
	if text, err := os.ReadFile(note); err != nil || string(text) != server.URL+", prefix /minik8s\n" {
		t.Errorf("%q, %v", text, err)
	}
	out, err := p.command("clean", "--dry-run")
	if err != nil || !strings.Contains(out, "stop all its masters first") || !strings.Contains(out, "\"etcdctl del --prefix /minik8s/\"") {
		t.Errorf("clean: %v: %s", err, out)
	}
	// One that lost its etcd later makes none.
	server.Kill()
	server.Wipe()
	server.Start()
	p.fails("has no cluster below /minik8s")
}

// isScheduled makes a pod, unless it is there, and reports whether it has a node.
func (p *process) isScheduled(c client.Interface, name string) bool {
	p.t.Helper()
	pod := p.pod(c, name)
	if pod == nil {
		p.create(c, shell(name, forever))
		return false
	}
	return pod.Spec.NodeName != ""
}
