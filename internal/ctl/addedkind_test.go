package ctl

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"minik8s/internal/apiserver"
	"minik8s/internal/registry/registrytest"
)

// TestAddedKind works with a kind that came while the server ran, by the commands and over the server's socket.
func TestAddedKind(t *testing.T) {
	reg := registrytest.New(t)
	dir := t.TempDir()
	srv := apiserver.New(apiserver.Config{Registry: reg, Socket: filepath.Join(dir, "api.sock"), Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Run(ctx, func() { close(ready) }); err != nil {
			t.Error(err)
		}
	}()
	defer func() { cancel(); <-done }()
	<-ready

	ctl := func(stdin string, args ...string) (string, error) {
		var out, errOut bytes.Buffer
		p := newProgram(strings.NewReader(stdin), &out, &errOut)
		err := p.run(t.Context(), append([]string{"--data-dir", dir}, args...))
		return out.String() + errOut.String(), err
	}
	const manifest = "apiVersion: test.minik8s.io/v1\nkind: Gadget\nmetadata: {name: a, labels: {of: us}}\ncolours: {hat: red, coat: blue}\n"
	for _, early := range [][]string{{"get", "gadgets"}, {"apply", "-f", "-"}} {
		if text, err := ctl(manifest, early...); err == nil || !strings.Contains(err.Error(), "adget") {
			t.Errorf("%v before there is such a kind: %v, %s", early, err, text)
		}
	}
	if err := reg.AddKind(t.Context(), registrytest.Gadgets, registrytest.GadgetStrategy()); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args, stdin string
		want        []string
	}{
		{args: "apply -f -", stdin: manifest, want: []string{"gadget.test.minik8s.io/a created"}},
		{args: "apply -f -", stdin: manifest, want: []string{"unchanged"}},
		{args: "apply -f -", stdin: strings.Replace(manifest, ", coat: blue", ", shoe: brown", 1), want: []string{"configured"}},
		{args: "apply --server-side --force-conflicts -f -", stdin: strings.Replace(manifest, "red", "green", 1), want: []string{"applied"}},
		{args: "create gadget -f -", stdin: strings.Replace(manifest, "name: a", "name: b", 1), want: []string{"created"}},
		{args: "get gadgets", want: []string{"NAME", "AGE", "a ", "b "}},
		{args: "get gd a -o yaml", want: []string{"kind: Gadget", "hat: green", "shoe: brown"}},
		{args: "get Gadget/a -o json", want: []string{`"hat": "green"`}},
		{args: "get gadgets.test.minik8s.io,cm -o name", want: []string{"gadget.test.minik8s.io/a\n", "gadget.test.minik8s.io/b\n"}},
		{args: "get gadgets -o yaml", want: []string{"kind: List", "name: b"}},
		{args: "describe gadget a", want: []string{"Name:", "Colours:", "shoe: brown", "of=us"}},
		{args: "label gadget a of=them --overwrite", want: []string{"gadget"}},
		{args: "get gadgets -l of=them -o name", want: []string{"gadget.test.minik8s.io/a\n"}},
		{args: "update -f -", stdin: strings.Replace(manifest, "red", "black", 1), want: []string{"replaced"}},
		{args: "why gadget a", want: []string{"gadget"}},
		{args: "__complete get ga", want: []string{"gadgets"}},
		{args: "__complete get gadgets a", want: []string{"a"}},
		{args: "delete gadget a", want: []string{`gadget "a" deleted`}},
		{args: "clear --yes", want: []string{"gadget.test.minik8s.io/b deleted"}},
	} {
		text, err := ctl(step.stdin, strings.Fields(step.args)...)
		if err != nil {
			t.Errorf("%s: %v: %s", step.args, err, text)
		}
		for _, want := range step.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %s", step.args, want, text)
			}
		}
	}
	if n := reg.Count(registrytest.Gadgets); n != 0 {
		t.Errorf("%d gadgets are left", n)
	}
	if _, err := ctl("", "get", "gadgte"); err == nil || !strings.Contains(err.Error(), "Did you mean gadget") {
		t.Errorf("a typing mistake: %v", err)
	}
}
