package ctl

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"minik8s/internal/ctl/exit"
	"minik8s/internal/membership"
)

func (f *fakeAPI) answers(route string, h http.HandlerFunc) { f.routes[route] = h }

func TestEtcdMembers(t *testing.T) {
	f := newFake(t)
	list := membership.List{Revision: 9, Members: []membership.Member{
		{ID: "a1", Name: "m1", Address: "10.0.0.1:2380", API: "10.0.0.1:6443", Role: membership.Leader, State: membership.Up},
		{ID: "b2", Address: "10.0.0.2:2380", Role: membership.Learner, State: membership.Joining}}}
	f.answers("GET "+membership.Path, func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(list); err != nil {
			t.Error(err)
		}
	})
	got := f.ctl("", "etcd", "members")
	want := "NAME     ADDRESS         ROLE      STATE\nm1       10.0.0.1:2380   leader    up\n<none>   10.0.0.2:2380   learner   joining\n"
	if got.code != 0 || got.out != want || got.err != "" {
		t.Errorf("%+v", got)
	}
	if got := f.ctl("", "etcd", "members", "-o", "wide"); !strings.Contains(got.out, "a1   10.0.0.1:6443") {
		t.Errorf("%+v", got)
	}
	list.Revision = 0
	if got := f.ctl("", "etcd", "members"); got.code != 0 || got.out != want || !strings.Contains(got.err, "etcd recover") {
		t.Errorf("%+v", got)
	}
	removed := ""
	f.answers("DELETE "+membership.Path+"/m1", func(_ http.ResponseWriter, r *http.Request) { removed = r.URL.Path })
	if got := f.ctl("", "etcd", "remove", "m1"); got.out != "member m1 removed\n" || removed == "" {
		t.Errorf("%+v", got)
	}
}

func TestEtcdSnapshot(t *testing.T) {
	f := newFake(t)
	content := bytes.Repeat([]byte("secret data "), 100_000)
	sum := sha256.Sum256(content)
	whole := append(bytes.Clone(content), sum[:]...)
	sent := whole
	f.answers("GET "+membership.SnapshotPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(membership.RevisionHeader, "42")
		w.Write(sent) //nolint:errcheck // the test sees what came
	})
	dir := t.TempDir()
	file := filepath.Join(dir, "copy")
	if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{"cut": whole[:len(whole)-100], "nothing": nil, "short": whole[:10]} {
		sent = bad
		if got := f.ctl("", "etcd", "snapshot", file); got.code != exit.Failed || !strings.Contains(got.text, "not written") {
			t.Errorf("%s: %+v", name, got)
		}
		if b, err := os.ReadFile(file); string(b) != "old" {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	sent = whole
	if got := f.ctl("", "etcd", "snapshot", file); got.code != 0 || !strings.Contains(got.out, "1200032 bytes, revision 42") {
		t.Errorf("%+v", got)
	}
	b, err := os.ReadFile(file)
	info, serr := os.Stat(file)
	if err = errors.Join(err, serr); err != nil || !bytes.Equal(b, whole) || info.Mode().Perm() != 0o600 {
		t.Errorf("%d bytes, %v, %v", len(b), info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if got := f.ctl("", "etcd", "snapshot", dir); got.code != exit.Usage || !strings.Contains(got.text, "is a directory") {
		t.Errorf("%+v", got)
	}
}

func TestEtcdOffline(t *testing.T) {
	f := newFake(t)
	var asked []string
	f.offline = Offline{
		Restore: func(_ context.Context, dir, file string, force bool) (Restored, error) {
			asked = append(asked, "restore", dir, file, map[bool]string{true: "force"}[force])
			return Restored{Revision: 5}, nil
		},
		Recover: func(_ context.Context, dir string) (Restored, error) {
			asked = append(asked, "recover", dir)
			return Restored{Revision: 6, Aside: "/old"}, nil
		}}
	if got := f.ctl("", "etcd", "restore", "x.db", "--force", "--data-dir", "/d"); got.code != 0 || !strings.Contains(got.out, "revision 5") ||
		strings.Contains(got.out, "kept") || !strings.Contains(got.out, "start minik8sd") {
		t.Errorf("%+v", got)
	}
	if got := f.ctl("", "etcd", "recover", "--data-dir=/d"); got.code != 0 || !strings.Contains(got.out, "kept in /old") {
		t.Errorf("%+v", got)
	}
	if s := strings.Join(asked, " "); s != "restore /d x.db force recover /d" {
		t.Error(s)
	}
	f.offline.Recover = func(context.Context, string) (Restored, error) { return Restored{}, errors.New("it runs") }
	if got := f.ctl("", "etcd", "recover"); got.code != exit.Failed || !strings.Contains(got.text, "it runs") {
		t.Errorf("%+v", got)
	}
	for args, says := range map[string]string{"": "etcd what?", "membres": "did you mean members", "members x": "only -o wide", "members -o yaml": "only -o wide",
		"remove": "which member", "remove a b": "which member", "snapshot": "which file", "restore": "which snapshot", "recover x": "no arguments"} {
		if got := f.ctl("", append([]string{"etcd"}, strings.Fields(args)...)...); got.code != exit.Usage || !strings.Contains(got.text, says) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
