package hosts_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/hosts"
)

// door is a host that looks like a master: behind its port is the API of the one master there is.
type door struct {
	*hosts.Host
	t      *testing.T
	master *hosts.Host

	mu    sync.Mutex
	l     net.Listener
	conns map[net.Conn]bool
}

func (d *door) address() string { return d.Address.String() + ":6443" }

func (d *door) open() {
	d.t.Helper()
	l, err := d.Listen(d.address())
	if err != nil {
		d.t.Fatal(err)
	}
	d.mu.Lock()
	d.l, d.conns = l, map[net.Conn]bool{}
	d.mu.Unlock()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			up, err := d.master.Dial(context.Background(), d.master.Address.String()+":6443")
			if err != nil {
				c.Close()
				continue
			}
			d.mu.Lock()
			shut := d.l != l // meanwhile
			if !shut {
				d.conns[c], d.conns[up] = true, true
			}
			d.mu.Unlock()
			if shut {
				c.Close()
				up.Close()
				return
			}
			for _, way := range [][2]net.Conn{{c, up}, {up, c}} {
				go func() {
					io.Copy(way[0], way[1])
					d.mu.Lock()
					defer d.mu.Unlock()
					delete(d.conns, way[0])
					way[0].Close()
				}()
			}
		}
	}()
}

// shut ends the door with its connections, as if the master were killed.
func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.l != nil {
		d.l.Close()
		d.l = nil
	}
	for c := range d.conns {
		c.Close()
	}
	clear(d.conns)
}

func (d *door) used() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns) > 0
}

// A worker follows the masters that the cluster names, and moves to another when its own is killed: its watches and
// heartbeats go on at once.
func TestWorkerMovesBetweenMasters(t *testing.T) {
	lab := newLab(t)
	add := func(name string) *hosts.Host {
		h, err := lab.Add(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	m, w := add("m1"), add("w1")
	doors := []*door{{Host: add("a"), t: t, master: m}, {Host: add("b"), t: t, master: m}}
	if err := m.Start("--role=master,worker"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the master is ready", func() bool { return m.Ready(t.Context()) })
	c, err := m.API()
	if err != nil {
		t.Fatal(err)
	}
	announce := func(name, address string) {
		t.Helper()
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.ControlPlane: ""},
			Annotations: map[string]string{api.APIAddressAnnotation: address}}}
		if _, err := c.Create(t.Context(), n, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range doors {
		d.open()
		defer d.shut()
		announce(d.Name, d.address())
	}
	// The real master is not believed any more, so that only the doors are masters.
	hide := client.Patch{Type: types.MergePatchType, Data: []byte(`{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":null}}}`)}
	if _, err := c.Patch(t.Context(), client.Key{Kind: api.Nodes, Name: "m1"}, hide, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	var line string
	eventually(t, "a token", func() bool { line, err = m.Ctl("token", "create"); return err == nil })
	if err := w.Start(append(strings.Fields(line)[1:], "--heartbeat-interval=1s")...); err != nil {
		t.Fatal(err)
	}
	remembered := func() string {
		data, _ := os.ReadFile(filepath.Join(w.Dir(), "masters.json"))
		return string(data)
	}
	eventually(t, "the worker knows the masters", func() bool { return strings.Contains(remembered(), doors[0].address()) })
	kubeconfig := filepath.Join(w.Dir(), "kubelet.kubeconfig")
	content, err := os.ReadFile(kubeconfig)
	st, serr := os.Stat(kubeconfig)
	if err != nil || serr != nil || st.Mode().Perm() != 0o600 || bytes.Contains(content, []byte("-data")) ||
		!bytes.Contains(content, []byte("client-certificate: "+w.Dir()+"/pki/node.crt")) || !bytes.Contains(content, []byte("server: https://127.0.0.1:6443")) {
		t.Errorf("%v, %v, %v: %s", err, serr, st, content)
	}
	if !strings.Contains(remembered(), doors[1].address()) || strings.Contains(remembered(), m.Address.String()) {
		t.Error(remembered())
	}
	if err := w.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := w.Start(); err != nil { // and leaves the server that it was given
		t.Fatal(err)
	}
	beats := heartbeats(t, c, "w1")
	var watch, beat []time.Duration
	for i := range 3 {
		now, other := doors[0], doors[1]
		eventually(t, "one is used", func() bool { return doors[0].used() != doors[1].used() })
		if other.used() {
			now, other = other, now
		}
		<-beats
		drain(beats)
		killed := time.Now()
		now.shut()
		name := fmt.Sprint("new", i)
		announce(name, fmt.Sprintf("10.98.1.%d:1", 100+i)) // what the worker hears by its watch
		eventually(t, "the worker hears of a change", func() bool { return strings.Contains(remembered(), fmt.Sprintf("10.98.1.%d:1\"", 100+i)) })
		watch = append(watch, time.Since(killed))
		<-beats
		beat = append(beat, time.Since(killed))
		if !other.used() {
			t.Error("it went somewhere else")
		}
		if _, err := c.Delete(t.Context(), client.Key{Kind: api.Nodes, Name: name}, nil); err != nil {
			t.Fatal(err)
		}
		eventually(t, "and of the next", func() bool { return !strings.Contains(remembered(), fmt.Sprintf("10.98.1.%d:1\"", 100+i)) })
		now.open()
	}
	t.Logf("from the kill of a master to the next event of a watch: %v", rounded(watch))
	t.Logf("and to the next heartbeat, of one each second: %v", rounded(beat))
}

func rounded(all []time.Duration) []time.Duration {
	slices.Sort(all)
	for i := range all {
		all[i] = all[i].Round(time.Millisecond)
	}
	return all
}

// heartbeats sends a value for each renewal of a node's Lease.
func heartbeats(t *testing.T, c client.Interface, node string) <-chan struct{} {
	t.Helper()
	w, err := c.Watch(t.Context(), api.Leases, client.WatchOptions{Namespace: corev1.NamespaceNodeLease, Fields: fields.OneTermEqualSelector("metadata.name", node)})
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan struct{}, 1000)
	go func() {
		defer w.Stop()
		var last metav1.MicroTime
		for e := range w.Events() {
			if l, ok := e.Object.(*coordinationv1.Lease); ok && l.Spec.RenewTime != nil && !l.Spec.RenewTime.Equal(&last) {
				last = *l.Spec.RenewTime
				out <- struct{}{}
			}
		}
	}()
	return out
}

func drain(ch <-chan struct{}) {
	for {
		select {
		case <-ch:
		default:
			return
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}
