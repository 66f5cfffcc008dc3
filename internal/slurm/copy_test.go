package slurm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"testing"

	"minik8s/internal/slurm"
	"minik8s/internal/slurm/slurmtest"
)

// stopper cancels a copy when the first bytes have come.
type stopper struct {
	cancel func()
	got    int64
}

func (s *stopper) Write(b []byte) (int, error) {
	s.cancel()
	s.got += int64(len(b))
	return len(b), nil
}

// TestCopy copies files, from an offset too, until it is cancelled, and tells those that cannot be read.
func TestCopy(t *testing.T) {
	b := newBed(t, slurmtest.Options{})
	j := b.job("copy")
	b.submitted(j)
	b.ends(j)
	b.s.Do("cd '" + j.Layout.Files() + "'; echo abcdef >good; echo >bad; chmod 0 bad; mkdir -m 0 closed; mkdir -p deep/in; touch deep/in/a; chmod 600 deep/in; head -c 32M /dev/zero >big; ln -s good link; echo x >\"$(printf 'odd\\377')\"")
	t.Cleanup(func() { b.s.Do("cd '" + j.Layout.Files() + "'; chmod 700 closed deep/in") })
	entries, err := b.List(b.ctx, j.Layout)
	if err != nil {
		t.Fatal(err)
	}
	entries = slices.DeleteFunc(entries, func(e slurm.Entry) bool { return e.Path == "runs" || e.Path == "out" || e.Path == "err" })
	want := []slurm.Entry{{Path: "bad", Size: 1, Closed: true}, {Path: "big", Size: 32 << 20}, {Path: "closed", Closed: true, Folder: true},
		{Path: "deep/in", Closed: true, Folder: true}, {Path: "good", Size: 7}, {Path: "link", Closed: true, Link: true}, {Path: "odd\uFFFD", Size: 2, Closed: true}}
	if !slices.Equal(entries, want) {
		t.Errorf("%+v", entries)
	}
	if sums, err := b.Sums(b.ctx, j.Layout, []string{"bad", "good"}); err != nil || sums[0] != "" || sums[1] != "ae0666f161fed1a5dde998bbd0e140550d2da0db27db1d0e31e370f2bd366a57" {
		t.Errorf("%q %v", sums, err)
	}
	for name, want := range map[string]error{"bad": fs.ErrPermission, "none": fs.ErrNotExist, "good": nil} {
		var got bytes.Buffer
		if err := b.Copy(b.ctx, j.Layout, name, 4, &got); !errors.Is(err, want) || err == nil && got.String() != "ef\n" {
			t.Errorf("%s: %q %v", name, got.String(), err)
		}
	}
	ctx, cancel := context.WithCancel(b.ctx)
	s := &stopper{cancel: cancel}
	if err := b.Copy(ctx, j.Layout, "big", 0, s); !errors.Is(err, context.Canceled) || s.got >= 32<<20 {
		t.Errorf("a cancelled copy: %d bytes, %v", s.got, err)
	}
	if err := b.Copy(b.ctx, j.Layout, "big", 0, io.Discard); err != nil {
		t.Error(fmt.Errorf("and once more: %w", err))
	}
}
