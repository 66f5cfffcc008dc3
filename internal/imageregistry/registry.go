package imageregistry

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/distribution/v3/registry/storage/driver/filesystem"

	"minik8s/internal/disk"
)

// Config configures a Registry.
type Config struct {
	// Dir has the registry's files.
	Dir string
	// Missing is told the name of a repository, and the digest of an image, that is asked for and not here. It may push it here.
	// Nil: nothing can be done.
	Missing func(ctx context.Context, repository, digest string)
	Log     *slog.Logger
}

// Registry is a registry of images. Its methods are safe for concurrent use.
type Registry struct {
	cfg   Config
	start sync.Once
	app   http.Handler

	pushing   sync.RWMutex // held for writing while what nobody names is removed
	pieceTime time.Duration
	room      func(dir string) int64 // how many bytes may be pushed
}

// New makes a registry. It does nothing until it is asked.
func New(cfg Config) *Registry { return &Registry{cfg: cfg, pieceTime: pieceTime, room: roomAt} }

// root is where distribution keeps repositories and blobs, below Dir.
const root = "docker/registry/v2"

func (r *Registry) open() http.Handler {
	r.start.Do(func() {
		if err := disk.Private(r.cfg.Dir, 0o700); err != nil { // the images of functions have their source
			r.cfg.Log.Error("the registry's files may be open to others", "error", err)
		}
		cfg := &configuration.Configuration{Version: configuration.CurrentVersion,
			Storage: configuration.Storage{
				"filesystem":  configuration.Parameters{"rootdirectory": r.cfg.Dir},
				"delete":      configuration.Parameters{"enabled": true},
				"maintenance": configuration.Parameters{"uploadpurging": map[any]any{"enabled": false}}, // it would tick
			}}
		cfg.HTTP.Secret = rand.Text() // of uploads that go on: they begin anew after a restart
		cfg.HTTP.RelativeURLs = true
		r.app = handlers.NewApp(context.Background(), cfg)
	})
	return r.app
}

// byDigest are requests for one image, by its digest.
var byDigest = regexp.MustCompile(`^/v2/(.+)/manifests/(sha256:[0-9a-f]{64})$`)

// ServeHTTP implements http.Handler, for paths below /v2/.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet || req.Method == http.MethodHead {
		if m := byDigest.FindStringSubmatch(req.URL.Path); m != nil && r.cfg.Missing != nil && !r.Has(m[1], m[2]) {
			r.cfg.Missing(req.Context(), m[1], m[2])
		}
	}
	r.serve(w, req)
}

// serve answers with what is here.
func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		r.push(w, req)
		return
	}
	r.open().ServeHTTP(w, req)
}

// Has reports whether a repository has an image, by its digest. A link that a power cut has emptied is none.
func (r *Registry) Has(repository, digest string) bool {
	text, err := os.ReadFile(r.link(repository, digest))
	return err == nil && string(text) == digest
}

// link is the file by which a repository has an image.
func (r *Registry) link(repository, digest string) string {
	return filepath.Join(r.cfg.Dir, root, "repositories", filepath.FromSlash(repository), "_manifests/revisions/sha256", strings.TrimPrefix(digest, "sha256:"), "link")
}

// Repositories are those below a prefix, as "functions/", that have a folder of their own: PREFIX/A/B.
func (r *Registry) Repositories(prefix string) ([]string, error) {
	base := filepath.Join(r.cfg.Dir, root, "repositories")
	found, err := filepath.Glob(filepath.Join(base, prefix, "*", "*", "_manifests"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range found {
		if name, err := filepath.Rel(base, filepath.Dir(f)); err == nil {
			out = append(out, filepath.ToSlash(name))
		}
	}
	return out, nil
}

// Images are the digests of a repository's images.
func (r *Registry) Images(repository string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(filepath.Dir(r.link(repository, "sha256:0"))))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, "sha256:"+e.Name())
	}
	return out, err
}

// Image is one image of a repository.
type Image struct{ Repository, Digest string }

// dropUploads removes the uploads to which nothing was added since then. Distribution goes by a time that it has written down when one
// began: what a power cut has emptied would be new for ever, and one that takes long old.
func (r *Registry) dropUploads(since time.Time) error {
	err := filepath.WalkDir(filepath.Join(r.cfg.Dir, root, "repositories"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || filepath.Base(filepath.Dir(path)) != "_uploads" {
			return err
		}
		newest := time.Time{}
		err = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err == nil && info.ModTime().After(newest) {
				newest = info.ModTime()
			}
			return err
		})
		if err == nil && newest.Before(since) {
			err = os.RemoveAll(path)
		}
		if err != nil {
			return err
		}
		return fs.SkipDir
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was ever pushed
	}
	return err
}

// abandoned is after how long an upload is taken for one that nobody goes on with.
const abandoned = 24 * time.Hour

// Sweep removes repositories and images, uploads that were cut off long ago, and then all layers that no image has any more.
func (r *Registry) Sweep(ctx context.Context, repositories []string, images []Image) error {
	r.pushing.Lock()
	defer r.pushing.Unlock()
	for _, name := range repositories {
		if err := os.RemoveAll(filepath.Join(r.cfg.Dir, root, "repositories", filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	for _, i := range images {
		if err := os.RemoveAll(filepath.Dir(r.link(i.Repository, i.Digest))); err != nil {
			return err
		}
	}
	driver := filesystem.New(filesystem.DriverParameters{RootDirectory: r.cfg.Dir, MaxThreads: 8})
	if err := r.dropUploads(time.Now().Add(-abandoned)); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(r.cfg.Dir, root, "blobs")); errors.Is(err, fs.ErrNotExist) {
		return nil // no layer was ever pushed
	}
	names, err := storage.NewRegistry(ctx, driver)
	if err != nil {
		return err
	}
	return storage.MarkAndSweep(ctx, driver, names, storage.GCOpts{RemoveUntagged: false, Quiet: true})
}
