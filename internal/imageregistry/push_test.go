package imageregistry

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRoom(t *testing.T) {
	for _, c := range []struct {
		free, size uint64
		want       int64
	}{
		{10 << 30, 100 << 30, 10<<30 - 256<<20},
		{100 << 20, 100 << 30, 100<<20 - 256<<20},
		{1 << 30, 2000 << 20, 1<<30 - 100<<20}, // of a small disk a part is kept
		{0, 1000 << 20, -50 << 20},
	} {
		if got := room(c.free, c.size); got != c.want {
			t.Errorf("%d free of %d: %d, want %d", c.free, c.size, got, c.want)
		}
	}
}

// made is a registry behind HTTP.
func made(t *testing.T) (*Registry, *httptest.Server) {
	r := New(Config{Dir: t.TempDir()})
	srv := httptest.NewServer(r)
	t.Cleanup(srv.Close)
	return r, srv
}

// upload begins one, and returns where it goes on.
func upload(t *testing.T, srv *httptest.Server) string {
	t.Helper()
	resp, err := http.Post(srv.URL+"/v2/a/b/blobs/uploads/", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		t.Fatalf("an upload: %s", resp.Status)
	}
	return resp.Header.Get("Location")
}

// A client that stops in the middle of a push is cut off, so that what nobody names can be swept.
func TestAStalledPushEnds(t *testing.T) {
	r, srv := made(t)
	at := upload(t, srv)
	r.pieceTime = 50 * time.Millisecond
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "PATCH "+at+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: 1000\r\n\r\nabc"); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, c)
		answered <- err
	}()
	select {
	case <-answered: // the server has closed the connection
	case <-time.After(20 * time.Second):
		t.Fatal("the client may stand still for ever")
	}
	swept := make(chan error, 1)
	go func() { swept <- r.Sweep(t.Context(), nil, nil) }()
	select {
	case err := <-swept:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the sweep waits for a client that sends nothing")
	}
}

// On a disk that is nearly full nothing is pushed; reading and deleting go on.
func TestPushesNeedRoom(t *testing.T) {
	r, srv := made(t)
	at := upload(t, srv)
	do := func(method, path, body string, length int64) (int, string) {
		req, err := http.NewRequest(method, srv.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	r.room = func(string) int64 { return 10 }
	if code, text := do("PATCH", at, "ten and more", 12); code != http.StatusInsufficientStorage || !strings.Contains(text, "nearly full") {
		t.Errorf("more than there is room for: %d %s", code, text)
	}
	if code, text := do("PATCH", at, "ten and more, in pieces", -1); code < 400 {
		t.Errorf("more than there is room for, of unknown length: %d %s", code, text)
	}
	asked := 0
	r.room = func(string) int64 { // others fill the disk meanwhile
		if asked++; asked > 1 {
			return -1
		}
		return 1 << 30
	}
	if code, text := do("PATCH", at, strings.Repeat("x", 2*askAgain), -1); code < 400 {
		t.Errorf("a push while others fill the disk: %d %s", code, text)
	}
	r.room = func(string) int64 { return -1 }
	if code, text := do("POST", "/v2/a/b/blobs/uploads/", "", 0); code != http.StatusInsufficientStorage {
		t.Errorf("an upload on a full disk: %d %s", code, text)
	}
	if code, text := do("GET", "/v2/", "", 0); code != http.StatusOK {
		t.Errorf("reading on a full disk: %d %s", code, text)
	}
	if code, text := do("DELETE", "/v2/a/b/manifests/sha256:"+strings.Repeat("0", 64), "", 0); code == http.StatusInsufficientStorage {
		t.Errorf("deleting on a full disk: %d %s", code, text)
	}
}

// Uploads that nobody has gone on with for a day are swept, and no others.
func TestOldUploadsAreSwept(t *testing.T) {
	r, srv := made(t)
	upload(t, srv)
	upload(t, srv)
	begun := func() (found []string) {
		err := filepath.WalkDir(r.cfg.Dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Name() == "startedat" {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	two := begun()
	if len(two) != 2 {
		t.Fatalf("uploads: %v", two)
	}
	if err := os.WriteFile(two[0], nil, 0o600); err != nil { // as a power cut leaves it
		t.Fatal(err)
	}
	err := filepath.WalkDir(filepath.Dir(two[0]), func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, time.Time{}, time.Now().Add(-abandoned-time.Hour)))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Sweep(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	if left := begun(); len(left) != 1 || left[0] != two[1] {
		t.Errorf("after a sweep %v of %v are left", left, two)
	}
}
