package manifest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"minik8s/internal/ctl/console"
	"minik8s/internal/ctl/exit"
)

// Files are the sources of manifests, as given by the user.
type Files struct {
	// Names are files, folders, URLs, or - for standard input.
	Names []string
	// Recursive reads folders with all their subfolders.
	Recursive bool
}

// readAll reads every document of the files.
func readAll(ctx context.Context, c *console.Console, files Files) ([]raw, error) {
	if len(files.Names) == 0 {
		return nil, exit.Usagef("which file? -f FILE, a folder, a URL, or - for standard input")
	}
	var docs []raw
	for _, file := range files.Names {
		sources, err := expand(file, files.Recursive)
		if err != nil {
			return nil, err
		}
		for _, source := range sources {
			found, err := readOne(ctx, c, source)
			if err != nil {
				return nil, err
			}
			docs = append(docs, found...)
		}
	}
	if len(docs) == 0 {
		return nil, exit.Failf(exit.Failed, "%s: no document in it", strings.Join(files.Names, ", "))
	}
	return docs, nil
}

// readOne reads the documents of a file, a URL or standard input.
func readOne(ctx context.Context, c *console.Console, source string) ([]raw, error) {
	data, err := fetch(ctx, c, source)
	if err != nil {
		return nil, err
	}
	if source == "-" {
		source = "standard input"
	}
	return split(source, data)
}

// expand returns the files in a folder, sorted by name.
func expand(file string, recursive bool) ([]string, error) {
	if file == "-" || isURL(file) {
		return []string{file}, nil
	}
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.Failf(exit.Failed, "%s: there is no such file or folder", file)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{file}, nil
	}
	var out []string
	err = filepath.WalkDir(file, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != file && !recursive:
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		switch strings.ToLower(filepath.Ext(path)) {
		case ".yaml", ".yml", ".json":
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, exit.Failf(exit.Failed, "%s: no .yaml, .yml or .json file in it", file)
	}
	sort.Strings(out)
	return out, nil
}

func isURL(s string) bool { return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") }

// maxManifest limits how much is read from one source; real manifests are far smaller.
const maxManifest = 64 << 20

func fetch(ctx context.Context, c *console.Console, source string) ([]byte, error) {
	switch {
	case source == "-":
		if c.InTTY {
			c.Note("reading the manifest from the terminal; end it with Ctrl-D")
		}
		return io.ReadAll(io.LimitReader(c.In, maxManifest))
	case !isURL(source):
		return os.ReadFile(source)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, exit.Failf(exit.Failed, "%s: the server answered %s", source, resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxManifest))
}
