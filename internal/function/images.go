package function

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/function/image"
	"minik8s/internal/function/plan"
	"minik8s/internal/imageregistry"
)

// RegistryHost is the cluster's registry in the names of images. Nodes know the way to it; no DNS does.
const RegistryHost = "registry.minik8s.io:5000"

// errNoBase means that Python functions cannot have images.
var errNoBase = errors.New("there is no image with Python to stand on: start the masters with --function-base=FILE, an OCI archive (make images makes build/functions/python.tar)")

// Images makes the images of functions on one master. Its methods are safe for concurrent use.
type Images struct {
	archive string // with the base; empty: there is none
	dir     string // for the base's files
	client  client.Interface
	store   *imageregistry.Registry
	log     *slog.Logger

	mu       sync.Mutex // one image at a time: it is short work, and the base is opened once
	base     v1.Image
	digest   string            // of the base
	platform string            // see Platform
	written  time.Time         // of the archive that base is from
	newest   map[string]string // the digest that was made last, of each repository: it may be about to be used
}

// NewImages makes it; store is the master's registry, and archive the base image. c reads Functions.
func NewImages(c client.Interface, dir, archive string, store *imageregistry.Registry, log *slog.Logger) *Images {
	return &Images{client: c, archive: archive, dir: dir, store: store, log: log, newest: map[string]string{}}
}

func (m *Images) registry() image.Registry {
	return image.Registry{Host: RegistryHost, Transport: m.store}
}

// Ref has a function's image made, and returns its name with its digest.
func (m *Images) Ref(ctx context.Context, f *minik8s.Function) (string, error) {
	if f.Spec.Image != "" {
		return f.Spec.Image, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.open(ctx); err != nil {
		return "", err
	}
	img, err := image.Build(m.base, &f.Spec)
	if err != nil {
		return "", err
	}
	ref, err := m.registry().Push(ctx, plan.Repository(f.Namespace, f.Name), img)
	if err == nil {
		m.newest[plan.Repository(f.Namespace, f.Name)] = digestOf(ref)
	}
	return ref, err
}

// Platform tells what images stand on here from other bases, and other programs that call functions: with the same one a function's image is the same.
func (m *Images) Platform(ctx context.Context) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.open(ctx); err != nil {
		return "", err
	}
	return m.platform, nil
}

// digestOf is what a reference ends with.
func digestOf(ref string) string {
	_, digest, _ := strings.Cut(ref, "@")
	return digest
}

// open reads the base, also when there is another one since; mu is held.
func (m *Images) open(ctx context.Context) error {
	if m.archive == "" {
		return errNoBase
	}
	info, err := os.Stat(m.archive)
	if errors.Is(err, os.ErrNotExist) {
		return errors.Join(errNoBase, err)
	}
	if err != nil {
		return err
	}
	if m.base != nil && m.written.Equal(info.ModTime()) {
		return nil
	}
	raw, err := image.OpenBase(m.archive, filepath.Join(m.dir, "base"))
	if err != nil {
		return err
	}
	digest, err := raw.Digest()
	if err != nil {
		return err
	}
	if m.base, err = m.registry().PushBase(ctx, raw); err != nil {
		return err
	}
	m.digest = digest.String()
	m.platform, err = image.Platform(digest)
	if err != nil {
		return err
	}
	m.written = info.ModTime()
	return nil
}

// Missing makes an image that this master is asked for and has not made, if there is a function whose image it is.
func (m *Images) Missing(ctx context.Context, repository, digest string) {
	fns, _, err := client.All[*minik8s.Function](ctx, m.client, api.Functions, client.ListOptions{})
	if err != nil {
		m.log.Warn("an image cannot be made", "image", repository, "error", err)
		return
	}
	for _, f := range fns {
		if plan.Repository(f.Namespace, f.Name) != repository || f.Spec.Image != "" {
			continue
		}
		ref, err := m.Ref(ctx, f)
		if err != nil || !strings.HasSuffix(ref, digest) {
			m.log.Warn("an image that another master made cannot be made here: do both have the same base?", "image", repository, "wanted", digest, "made", ref, "error", err)
		}
	}
}

// Sweep removes images of functions that are gone, and of older versions that no instance needs any more. used are the digests that
// are needed, by repository; a function that has no image yet has an empty one.
func (m *Images) Sweep(ctx context.Context, used map[string][]string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	names, err := m.store.Repositories("functions")
	if err != nil {
		return err
	}
	var gone []string
	var old []imageregistry.Image
	for _, name := range names {
		keep, there := used[name]
		if !there {
			gone = append(gone, name)
			delete(m.newest, name)
			continue
		}
		digests, err := m.store.Images(name)
		if err != nil {
			return err
		}
		for _, d := range digests {
			if d != m.newest[name] && !slices.Contains(keep, d) {
				old = append(old, imageregistry.Image{Repository: name, Digest: d})
			}
		}
	}
	if m.base != nil {
		digests, err := m.store.Images(image.BaseRepository)
		if err != nil {
			return err
		}
		for _, d := range digests {
			if d != m.digest { // another archive's; the images that stand on it have its layers by themselves
				old = append(old, imageregistry.Image{Repository: image.BaseRepository, Digest: d})
			}
		}
	}
	if gone == nil && old == nil {
		return nil
	}
	return m.store.Sweep(ctx, gone, old)
}
