package ctl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/urfave/cli/v2"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// raw is one document of a manifest as it was written.
type raw struct {
	source string // "web.yaml", or "web.yaml, document 2"
	doc    map[string]any
}

func fileFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f", "file", "filePath"},
			Usage: "a `FILE`, folder, URL, or - for standard input; may be given several times"},
		&cli.BoolFlag{Name: "recursive", Aliases: []string{"R"}, Usage: "folders with all that is below them"},
	}
}

// readAll reads every document of the files that -f names.
func (p *program) readAll(c *cli.Context) ([]raw, error) {
	files := c.StringSlice("filename")
	if len(files) == 0 {
		return nil, usagef("which file? -f FILE, a folder, a URL, or - for standard input")
	}
	var docs []raw
	for _, file := range files {
		sources, err := expand(file, c.Bool("recursive"))
		if err != nil {
			return nil, err
		}
		for _, source := range sources {
			data, err := p.fetch(c.Context, source)
			if err != nil {
				return nil, err
			}
			name := source
			if source == "-" {
				name = "standard input"
			}
			found, err := split(name, data)
			if err != nil {
				return nil, err
			}
			docs = append(docs, found...)
		}
	}
	if len(docs) == 0 {
		return nil, failf(codeFailed, "%s: no document in it", strings.Join(files, ", "))
	}
	return docs, nil
}

// expand makes the files of a folder out of it, in the order of their names.
func expand(file string, recursive bool) ([]string, error) {
	if file == "-" || isURL(file) {
		return []string{file}, nil
	}
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failf(codeFailed, "%s: there is no such file or folder", file)
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
		return nil, failf(codeFailed, "%s: no .yaml, .yml or .json file in it", file)
	}
	sort.Strings(out)
	return out, nil
}

func isURL(s string) bool { return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") }

// maxManifest bounds what is read from one source: no manifest comes near it.
const maxManifest = 64 << 20

func (p *program) fetch(ctx context.Context, source string) ([]byte, error) {
	switch {
	case source == "-":
		if p.inTTY {
			p.note("reading the manifest from the terminal; end it with Ctrl-D")
		}
		return io.ReadAll(io.LimitReader(p.in, maxManifest))
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
		return nil, failf(codeFailed, "%s: the server answered %s", source, resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxManifest))
}

// split takes the documents of a source apart: YAML's "---", and the items of a List.
func split(source string, data []byte) ([]raw, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var parts [][]byte
	for {
		part, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		parts = append(parts, part)
	}
	var docs []raw
	for i, part := range parts {
		at := source
		if len(parts) > 1 {
			at = fmt.Sprintf("%s, document %d", source, i+1)
		}
		// Strict: a key that is there twice is a mistake, and the second would win silently.
		text, err := yaml.YAMLToJSONStrict(part)
		if err != nil {
			return nil, failf(codeFailed, "%s: %v", at, err)
		}
		var v any
		// The decoder of apimachinery keeps integers whole.
		if err := utiljson.Unmarshal(text, &v); err != nil {
			return nil, failf(codeFailed, "%s: %v", at, err)
		}
		if v == nil {
			continue // only comments
		}
		doc, ok := v.(map[string]any)
		if !ok {
			return nil, failf(codeFailed, "%s: not an object with kind and metadata", at)
		}
		items, ok := doc["items"].([]any)
		if kind, _ := doc["kind"].(string); !ok || kind != "List" {
			docs = append(docs, raw{at, doc})
			continue
		}
		for n, item := range items {
			if doc, ok := item.(map[string]any); ok {
				docs = append(docs, raw{fmt.Sprintf("%s, item %d", at, n+1), doc})
			}
		}
	}
	return docs, nil
}
