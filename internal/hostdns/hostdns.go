package hostdns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"minik8s/internal/disk"
)

// File names the machine's servers.
type File struct {
	Path string
	// Owner tells our lines from those of another daemon. It is one word.
	Owner string
}

// mark begins each comment of ours.
const mark = "# minik8s-"

const (
	begins = ": the cluster's DNS comes first. These lines go when the daemon ends."
	ends   = ": end"
	linked = ": this file was a link to "
)

func (f File) line(text string) string { return mark + f.Owner + text }

// Use has the machine ask server first. It may be called again, also with another server.
func (f File) Use(server netip.Addr) error {
	have, link, err := f.read()
	if err != nil {
		return err
	}
	rest, was, _ := f.cut(have)
	if link == "" {
		link = was
	}
	text := f.line(begins) + "\n"
	if link != "" {
		text += f.line(linked) + link + "\n"
	}
	text += "nameserver " + server.String() + "\n" + f.line(ends) + "\n" + string(rest)
	if text == string(have) {
		return nil
	}
	return f.write([]byte(text))
}

// Restore makes the file what it was before Use, with what others have changed since. Without lines of ours it changes
// nothing.
func (f File) Restore() error {
	have, link, err := f.read()
	if err != nil || link != "" { // a link is somebody else's
		return err
	}
	rest, was, found := f.cut(have)
	switch {
	case !found:
		return nil
	case was == "":
		return f.write(rest)
	}
	next := f.Path + ".minik8s"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(was, next); err != nil {
		return err
	}
	return os.Rename(next, f.Path)
}

// read returns the file's text, and where it leads if it is a link. No file is an empty one.
func (f File) read() (text []byte, link string, err error) {
	if info, err := os.Lstat(f.Path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(f.Path); err != nil {
			return nil, "", err
		}
	}
	text, err = os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, link, nil
	}
	return text, link, err
}

// write replaces the file at once, so that nobody reads half of it, also after a power cut; a file that is a mount of its own, as in
// containers, is written over.
func (f File) write(text []byte) error {
	const mode = 0o644 // everybody reads it
	next := f.Path + ".minik8s"
	// One that a kill has left may be a link: what is written must not go where it leads.
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	put := func(path string) error {
		if err := os.WriteFile(path, text, mode); err != nil {
			return err
		}
		return disk.Sync(path)
	}
	if err := put(next); err != nil {
		return err
	}
	err := os.Rename(next, f.Path)
	if errors.Is(err, unix.EBUSY) {
		return errors.Join(os.Remove(next), put(f.Path))
	}
	return errors.Join(err, disk.SyncDir(filepath.Dir(f.Path)))
}

// cut takes our lines out of a text. was is the link that the file was.
func (f File) cut(text []byte) (rest []byte, was string, found bool) {
	inside := false
	for line := range strings.Lines(string(text)) {
		bare := strings.TrimRight(line, "\r\n")
		switch {
		case bare == f.line(begins):
			inside, found = true, true
		case inside && bare == f.line(ends):
			inside = false
		case inside && strings.HasPrefix(bare, f.line(linked)):
			was = strings.TrimPrefix(bare, f.line(linked))
		case !inside:
			rest = append(rest, line...)
		}
	}
	return rest, was, found
}

// Rest is a text without the lines of any daemon.
func Rest(text []byte) []byte {
	for _, line := range bytes.Split(text, []byte("\n")) {
		name, ok := bytes.CutPrefix(line, []byte(mark))
		if !ok {
			continue
		}
		if owner, ok := bytes.CutSuffix(name, []byte(begins)); ok {
			text, _, _ = File{Owner: string(owner)}.cut(text)
		}
	}
	return text
}

// settle is how long to wait after a change: whoever writes the file may write more.
const settle = 50 * time.Millisecond

// Keep has the machine ask server first until ctx ends, and then restores the file. It ends early, with the error, if the
// file cannot be followed or written.
func (f File) Keep(ctx context.Context, server netip.Addr, log *slog.Logger) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := watcher.Add(filepath.Dir(f.Path)); err != nil { // others replace the file
		return fmt.Errorf("host-dns: %w", err)
	}
	if err := f.Use(server); err != nil {
		return fmt.Errorf("host-dns: %w", err)
	}
	defer func() {
		if err := f.Restore(); err != nil {
			log.Error("the machine's DNS servers are not restored; they still are in the file, after ours", "file", f.Path, "error", err)
		}
	}()
	var due <-chan time.Time
	for {
		select {
		case e := <-watcher.Events:
			if filepath.Base(e.Name) == filepath.Base(f.Path) && due == nil {
				due = time.After(settle)
			}
		case err := <-watcher.Errors:
			return fmt.Errorf("host-dns: %w", err)
		case <-due:
			due = nil
			if err := f.Use(server); err != nil {
				return fmt.Errorf("host-dns: %w", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}
