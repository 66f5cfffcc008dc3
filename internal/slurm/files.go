package slurm

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/pkg/sftp"

	"minik8s/internal/slurm/batch"
)

// File is a file that goes to the login node with the job.
type File struct {
	Path    string // below the folder of the sources, clean
	Content []byte
}

// pack makes a tar of a job's scripts and files.
func pack(j *batch.Job, into string, files []File) ([]byte, error) {
	scripts, err := j.Scripts()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(name string, content []byte, mode int64) error {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	for _, name := range []string{"batch.sh", "run.sh", "start.sh", "compile.sh"} {
		if text, ok := scripts[name]; ok {
			if err := add(name, []byte(text), 0o700); err != nil {
				return nil, err
			}
		}
	}
	for _, f := range files {
		name := path.Join("files", into, f.Path)
		if !strings.HasPrefix(name, "files/") || !fs.ValidPath(name) {
			return nil, fmt.Errorf("%q: expected a path below the folder of the sources", f.Path)
		}
		if err := add(name, f.Content, 0o600); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Entry is a file of a job on the login node, a link, or a folder that the user cannot look into.
type Entry struct {
	Path   string // below the job's files
	Size   int64
	Closed bool // it cannot be read; a folder and a link always are
	Folder bool
	Link   bool
}

// List are the files of a job, in order of their paths. A job that has no folder has none. A file whose name is no UTF-8 is listed
// by what can be read of that, as one that cannot be read.
func (c *Cluster) List(ctx context.Context, l batch.Layout) ([]Entry, error) {
	out, err := c.node.Run(ctx, "[ -e "+batch.Quote(l.Files())+" ] || exit 0\ncd "+batch.Quote(l.Files())+` || exit 74
find . -type d \( ! -readable -o ! -executable \) -printf 'd 0 %P\0' -prune -o -type f -readable -printf 'f %s %P\0' -o -type f -printf 'c %s %P\0' -o -type l -printf 'l 0 %P\0'`)
	if err != nil {
		return nil, fmt.Errorf("the files of the job: %w", err)
	}
	var entries []Entry
	for rec := range strings.SplitSeq(string(out), "\x00") {
		kind, rest, _ := strings.Cut(rec, " ")
		size, name, ok := strings.Cut(rest, " ")
		n, err := strconv.ParseInt(size, 10, 64)
		legible := strings.ToValidUTF8(name, "\uFFFD")
		if ok && err == nil && fs.ValidPath(legible) {
			entries = append(entries, Entry{Path: legible, Size: n, Closed: kind != "f" || legible != name, Folder: kind == "d", Link: kind == "l"})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return entries, nil
}

// Read opens a file of a job. The error is fs.ErrNotExist if there is none. The size is that of now: the file of a running
// job grows.
func (c *Cluster) Read(ctx context.Context, l batch.Layout, name string) (*sftp.File, int64, error) {
	if !fs.ValidPath(name) {
		return nil, 0, fs.ErrNotExist
	}
	files, err := c.node.Files(ctx)
	if err != nil {
		return nil, 0, err
	}
	f, err := files.Open(l.Files() + "/" + name)
	if isNotExist(err) {
		return nil, 0, fs.ErrNotExist
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	if info.IsDir() {
		f.Close()
		return nil, 0, fmt.Errorf("%s is a folder: %w", name, fs.ErrNotExist)
	}
	return f, info.Size(), nil
}

// Copy writes a file of a job to w, from an offset on. The error is fs.ErrNotExist if there is none, and fs.ErrPermission if it cannot
// be read. It ends when ctx does.
func (c *Cluster) Copy(ctx context.Context, l batch.Layout, name string, offset int64, w io.Writer) error {
	f, _, err := c.Read(ctx, l, name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	_, err = f.WriteTo(&until{ctx, w})
	return err
}

// until is a writer that takes nothing more when ctx has ended. Closing the file would not end a copy: it waits for the same lock.
type until struct {
	ctx context.Context
	w   io.Writer
}

func (u *until) Write(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.w.Write(b)
}

// Sums are the SHA-256 checksums of files of a job, in the order of names, in hexadecimal; "" for one that cannot be read.
func (c *Cluster) Sums(ctx context.Context, l batch.Layout, names []string) ([]string, error) {
	of := make(map[string]string, len(names))
	for chunk := range slices.Chunk(names, 500) {
		out, err := c.node.RunLong(ctx, "cd "+batch.Quote(l.Files())+" || exit\n"+sumScript(chunk))
		if err != nil {
			return nil, fmt.Errorf("checksums: %w", err)
		}
		for line := range strings.SplitSeq(string(out), "\x00") {
			if len(line) > 68 && line[64] == ' ' && line[66:68] == "./" {
				of[line[68:]] = line[:64]
			}
		}
	}
	sums := make([]string, len(names))
	for i, n := range names {
		sums[i] = of[n]
	}
	return sums, nil
}

// sumScript prints a checksum, two characters and the name for each file that can be read, each ended by a zero. openssl comes first:
// it uses the processor's instructions for SHA, and is five times as quick as many a sha256sum. It cannot tell names with line breaks
// from lines, though.
func sumScript(names []string) string {
	words, plain := make([]string, len(names)), true
	for i, n := range names {
		words[i] = "./" + n
		plain = plain && !strings.Contains(n, "\n")
	}
	args := batch.QuoteAll(words)
	slow := "sha256sum -z -- " + args + " || true"
	if !plain {
		return slow
	}
	return "if command -v openssl >/dev/null 2>&1; then openssl dgst -sha256 -r " + args + " | tr '\\n' '\\000'; else " + slow + "; fi"
}

func isNotExist(err error) bool {
	return errors.Is(err, fs.ErrNotExist)
}

// Unreadable reports whether an error means that the login node could not read a file, while the connection stands.
func Unreadable(err error) bool {
	var status *sftp.StatusError
	return errors.As(err, &status) && status.FxCode() != sftp.ErrSSHFxNoConnection && status.FxCode() != sftp.ErrSSHFxConnectionLost
}

// diskFull makes the bare "failure" of an SFTP server understandable: version 3 of the protocol has no code for a full disk.
func diskFull(err error) error {
	var status *sftp.StatusError
	if errors.As(err, &status) && status.FxCode() == sftp.ErrSSHFxFailure {
		return fmt.Errorf("%w (is the disk there full, or a quota used up?)", err)
	}
	if errors.Is(err, syscall.ENOSPC) {
		return errors.New("no space left on the disk")
	}
	return err
}

// randomName is a name beside another that nobody else uses.
func randomName(beside string) (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return beside + "." + hex.EncodeToString(b[:]), nil
}
