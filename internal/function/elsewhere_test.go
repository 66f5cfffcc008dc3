package function

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/function/plan"
	"minik8s/internal/imageregistry"
	"minik8s/internal/imageregistry/registrytest"
)

// away makes images that lie in another registry, and returns the folder of the cluster's own, too.
func away(t *testing.T, r *registrytest.Registry, authFile string, log *slog.Logger) (*Images, string) {
	t.Helper()
	archive, own := filepath.Join(t.TempDir(), "base.tar"), t.TempDir()
	if err := os.WriteFile(archive, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(archive)
	if err != nil {
		t.Fatal(err)
	}
	m := NewImages(nil, t.TempDir(), archive, imageregistry.New(imageregistry.Config{Dir: own, Log: log}), Elsewhere{Name: r.Host + "/us/here", AuthFile: authFile}, log)
	m.raw, m.written, m.platform = empty.Image, info.ModTime(), "here"
	return m, own
}

func sourced(name, source string) *minik8s.Function {
	f := triggered(name)
	f.Spec.Source = source
	return f
}

// Images lie in another registry, by the login of the file; there they go when nobody needs them, and are made again when they are missed.
func TestImagesElsewhere(t *testing.T) {
	r := registrytest.Start(t, true)
	m, own := away(t, r, r.AuthFile(true), slog.New(slog.DiscardHandler))
	ref := func(source string) string {
		t.Helper()
		out, err := m.Ref(t.Context(), sourced("addFive", source))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	repository := plan.Repository("default", "addFive")
	at := "us/here/" + repository
	one := ref("1")
	if want := r.Host + "/" + at + "@"; !strings.HasPrefix(one, want) || !slices.Equal(r.Images(at), []string{strings.TrimPrefix(one, want)}) || !m.Holds(one) {
		t.Errorf("%s in %v", one, r.Images(at))
	}
	if n := len(r.Images("us/here/functions/base")); n != 1 {
		t.Errorf("%d base images", n)
	}
	r.Asked()
	if again := ref("1"); again != one || slices.ContainsFunc(r.Asked(), func(q string) bool { return strings.HasPrefix(q, http.MethodPut) }) {
		t.Errorf("%s, and it was pushed again", again)
	}
	// The older one is needed by an instance first.
	two := ref("2")
	used := map[string][]string{repository: {two, one}}
	sweep := func() {
		t.Helper()
		if err := m.Sweep(t.Context(), func() map[string][]string { return used }); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if n := len(r.Images(at)); n != 2 {
		t.Errorf("%d images", n)
	}
	used[repository] = []string{two}
	if !m.Left(repository, one) {
		t.Error("it need not be looked at")
	}
	for _, not := range []string{"", "minik8s/hello", RegistryHost + "/" + repository + "@sha256:0", r.Host + "/us/here/functions/other/x@sha256:0", r.Host + "/us/here/" + repository + "x@sha256:0"} {
		if m.Left(repository, not) {
			t.Errorf("%q is none of the function's", not)
		}
	}
	sweep()
	if left := r.Images(at); len(left) != 1 || !strings.HasSuffix(two, left[0]) {
		t.Errorf("left: %v", left)
	}
	// Nobody waits for another push, which may stand still.
	m.work.Lock()
	if _, err := m.Ref(t.Context(), sourced("addFive", "2")); !errors.Is(err, errBusy) {
		t.Errorf("during another push: %v", err)
	}
	if _, err := m.Platform(); err != nil {
		t.Error(err)
	}
	m.work.Unlock()
	// Its operator removes it, and it is pushed again.
	_, digest, _ := strings.Cut(two, "@")
	r.Remove(at, digest)
	if again := ref("2"); again != two || len(r.Images(at)) != 1 {
		t.Errorf("%s, %v", again, r.Images(at))
	}
	// The function goes; an image that is not there any more is no error.
	delete(used, repository)
	m.Left(repository, one)
	sweep()
	if left := r.Images(at); len(left) != 0 || len(m.left) != 0 {
		t.Errorf("left: %v, %v", left, m.left)
	}
	if entries, err := os.ReadDir(own); err != nil || len(entries) != 0 {
		t.Errorf("the cluster's own registry has %v, %v", entries, err)
	}
}

// A registry that removes nothing says so once; that it also hides what it has not is no reason to push nothing.
func TestImagesStayWhereNothingIsRemoved(t *testing.T) {
	r := registrytest.Start(t, false)
	r.Hides = true
	var said strings.Builder
	m, _ := away(t, r, r.AuthFile(true), slog.New(slog.NewTextHandler(&said, nil)))
	for _, name := range []string{"a", "b"} {
		if _, err := m.Ref(t.Context(), sourced(name, "x")); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := m.Sweep(t.Context(), func() map[string][]string { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(said.String(), "are its operator's to remove"); n != 1 || len(m.left) != 0 {
		t.Errorf("told %d times: %s", n, said.String())
	}
	if n := len(r.Images("us/here/functions/default/a")); n != 1 {
		t.Errorf("%d images", n)
	}
}

// A registry that lets nobody in, or does not answer, is said to, and tried again after a while and not before. No error has the login.
func TestRegistryFails(t *testing.T) {
	r := registrytest.Start(t, true)
	file := r.AuthFile(false)
	m, _ := away(t, r, file, slog.New(slog.DiscardHandler))
	try := func() error {
		t.Helper()
		_, err := m.Ref(t.Context(), sourced("f", "x"))
		if err != nil && (!strings.Contains(err.Error(), "the registry "+r.Host) || strings.Contains(err.Error(), registrytest.Password) || strings.Contains(err.Error(), registrytest.User)) {
			t.Errorf("it says %v", err)
		}
		return err
	}
	wait := time.Duration(0)
	for range 3 {
		var e *registryError
		if err := try(); !errors.As(err, &e) || !strings.Contains(err.Error(), "does not let this master in") || retryAfter(err) <= wait {
			t.Fatalf("with a wrong password: %v", err)
		}
		wait = e.after
		if r.Asked(); try() == nil || len(r.Asked()) != 0 {
			t.Error("it was asked again at once")
		}
		m.other.until = time.Now()
	}
	if m.other.until = time.Now(); wait != 4*minPause {
		t.Errorf("after %s", wait)
	}
	r.Stop()
	if err := try(); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("without an answer: %v", err)
	}
	r.Again()
	r.WriteAuth(file, true) // it is read each time
	if m.other.until = time.Now(); try() != nil || m.other.pause != 0 {
		t.Errorf("when it answers: %v", try())
	}
	// What is to be removed meanwhile is not forgotten.
	r.Stop()
	none := func() map[string][]string { return nil }
	if err := m.Sweep(t.Context(), none); err == nil || len(m.left) != 1 {
		t.Errorf("%v, %v", err, m.left)
	}
	r.Again()
	if err := m.Sweep(t.Context(), none); err != nil || len(m.left) != 0 || len(r.Images("us/here/functions/default/f")) != 0 {
		t.Errorf("%v, %v", err, m.left)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := try(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without its file: %v", err)
	}
}

// A login is never sent by plain HTTP but where that is allowed.
func TestPlainHTTPIsRefused(t *testing.T) {
	for host, refused := range map[string]bool{"10.0.0.1:5000": true, "plain.example": false, "127.0.0.1:5000": false} {
		q, err := http.NewRequest(http.MethodGet, "http://"+host+"/v2/", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = (&guarded{nobody{}, []string{"plain.example"}}).RoundTrip(q)
		if got := err != nil && strings.Contains(err.Error(), "--insecure-registries"); got != refused {
			t.Errorf("%s: %v", host, err)
		}
	}
}

type nobody struct{}

func (nobody) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("nobody") }
