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

// errBusy means that another image is being pushed to another registry, or removed there. It is worth trying again soon.
var errBusy = errors.New("another image is being pushed")

// Images makes the images of functions on one master. Its methods are safe for concurrent use.
type Images struct {
	archive string // with the base; empty: there is none
	dir     string // for the base's files
	client  client.Interface
	store   *imageregistry.Registry
	other   *elsewhere // where images lie instead; nil: in store
	log     *slog.Logger

	work sync.Mutex // one image at a time: it is short work, and none is made while some are removed
	base v1.Image   // raw, when the registry has it
	of   v1.Image   // the raw that base is of

	mu       sync.Mutex          // of what follows; nobody waits for a registry who holds it
	raw      v1.Image            // the base in the archive; nil: it was not read yet
	digest   string              // of raw
	platform string              // see Platform
	written  time.Time           // of the archive that raw is from
	newest   map[string]string   // the image that was made last, of each repository: it may be about to be used
	left     map[string]struct{} // images that perhaps nobody has any more, of another registry
}

// NewImages makes it; store is the master's registry, which has the images if elsewhere is none, and archive the base image. c reads Functions.
func NewImages(c client.Interface, dir, archive string, store *imageregistry.Registry, other Elsewhere, log *slog.Logger) *Images {
	return &Images{client: c, archive: archive, dir: dir, store: store, other: newElsewhere(other), log: log, newest: map[string]string{}, left: map[string]struct{}{}}
}

// own is the cluster's own registry.
func (m *Images) own() image.Registry { return image.Registry{Host: RegistryHost, Transport: m.store} }

func (m *Images) registry() image.Registry {
	if m.other != nil {
		return m.other.Registry
	}
	return m.own()
}

// push calls what, which pushes.
func (m *Images) push(ctx context.Context, what func(ctx context.Context) error) error {
	if m.other != nil {
		return m.other.push(ctx, what)
	}
	return what(ctx)
}

// Ref has a function's image made, and returns its name with its digest.
func (m *Images) Ref(ctx context.Context, f *minik8s.Function) (string, error) {
	if f.Spec.Image != "" {
		return f.Spec.Image, nil
	}
	if m.other == nil {
		m.work.Lock()
	} else if !m.work.TryLock() { // others may stand still: who waits for one would keep the functions from being looked after
		return "", errBusy
	}
	defer m.work.Unlock()
	base, err := m.pushedBase(ctx)
	if err != nil {
		return "", err
	}
	img, err := image.Build(base, &f.Spec)
	if err != nil {
		return "", err
	}
	repository, ref := plan.Repository(f.Namespace, f.Name), ""
	err = m.push(ctx, func(ctx context.Context) (err error) {
		ref, err = m.registry().Push(ctx, repository, img)
		return err
	})
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.newest[repository]; old != ref {
		m.leave(repository, old) // no status may ever have named it
	}
	m.newest[repository] = ref
	return ref, nil
}

// Platform tells what images stand on here from other bases, and other programs that call functions: with the same one a function's image is the same.
func (m *Images) Platform() (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.open(); err != nil {
		return "", err
	}
	return m.platform, nil
}

// Holds reports whether an image's name is one of the registry that has the images.
func (m *Images) Holds(ref string) bool {
	if m.other != nil {
		return strings.HasPrefix(ref, m.other.Host+"/")
	}
	return strings.HasPrefix(ref, RegistryHost+"/")
}

// Elsewhere reports whether that is another one than the cluster's own, which makes an image again when it is asked for one that it has not.
func (m *Images) Elsewhere() bool { return m.other != nil }

// pushedBase is the base, which the registry has; work is held.
func (m *Images) pushedBase(ctx context.Context) (v1.Image, error) {
	m.mu.Lock()
	err := m.open()
	raw := m.raw
	m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if m.base != nil && m.of == raw {
		return m.base, nil
	}
	err = m.push(ctx, func(ctx context.Context) (err error) {
		m.base, err = m.registry().PushBase(ctx, raw)
		return err
	})
	m.of = raw
	if err != nil {
		m.base = nil
	}
	return m.base, err
}

// open reads the base, also when there is another one since; mu is held.
func (m *Images) open() error {
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
	if m.raw != nil && m.written.Equal(info.ModTime()) {
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
	platform, err := image.Platform(digest)
	if err != nil {
		return err
	}
	m.raw, m.digest, m.platform, m.written = raw, digest.String(), platform, info.ModTime()
	return nil
}

// Missing makes an image that this master is asked for and has not made, if there is a function whose image it is.
func (m *Images) Missing(ctx context.Context, repository, digest string) {
	if m.other != nil {
		return // it would be made there
	}
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

// Left tells of an image that an object has named which is gone, or names another one now. It reports whether Sweep has to look at it:
// an image of that repository, and not in the cluster's own registry, where Sweep finds such images by itself.
func (m *Images) Left(repository, ref string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leave(repository, ref)
}

// leave is Left; mu is held.
func (m *Images) leave(repository, ref string) bool {
	if m.other == nil || !strings.HasPrefix(ref, m.other.Name(repository, "")) {
		return false
	}
	m.left[ref] = struct{}{}
	return true
}

// Sweep removes images of functions that are gone, and of older versions that no instance needs any more. used are the images that
// are needed, by repository, when nothing is being made; a function that has no image yet has an empty one.
func (m *Images) Sweep(ctx context.Context, used func() map[string][]string) error {
	m.work.Lock()
	defer m.work.Unlock()
	now := used()
	m.mu.Lock()
	for name, ref := range m.newest {
		if _, there := now[name]; !there {
			delete(m.newest, name)
			m.leave(name, ref)
		}
	}
	needed := map[string]bool{}
	for _, refs := range now {
		for _, ref := range refs {
			needed[ref] = true
		}
	}
	for _, ref := range m.newest {
		needed[ref] = true
	}
	var left []string
	for ref := range m.left {
		left = append(left, ref)
	}
	digest := m.digest
	m.mu.Unlock()
	return errors.Join(m.sweepOwn(ctx, now, needed, digest), m.sweepOther(ctx, left, needed))
}

// sweepOwn is Sweep in the cluster's own registry; base is the digest of the base image, empty if it was not read. With another registry
// it removes what was made before that.
func (m *Images) sweepOwn(ctx context.Context, used map[string][]string, needed map[string]bool, base string) error {
	names, err := m.store.Repositories("functions")
	if err != nil {
		return err
	}
	own := m.own()
	var gone []string
	var old []imageregistry.Image
	for _, name := range names {
		if _, there := used[name]; !there {
			gone = append(gone, name)
			continue
		}
		digests, err := m.store.Images(name)
		if err != nil {
			return err
		}
		for _, d := range digests {
			if !needed[own.Name(name, d)] {
				old = append(old, imageregistry.Image{Repository: name, Digest: d})
			}
		}
	}
	if base != "" {
		digests, err := m.store.Images(image.BaseRepository)
		if err != nil {
			return err
		}
		for _, d := range digests {
			if m.other != nil || d != base { // another archive's; the images that stand on it have its layers by themselves
				old = append(old, imageregistry.Image{Repository: image.BaseRepository, Digest: d})
			}
		}
	}
	if gone == nil && old == nil {
		return nil
	}
	return m.store.Sweep(ctx, gone, old)
}

// sweepOther is Sweep in another registry, of images that somebody has left. It is not asked for a list, since it may have others' images.
func (m *Images) sweepOther(ctx context.Context, left []string, needed map[string]bool) error {
	slices.Sort(left)
	for _, ref := range left {
		if !needed[ref] { // otherwise it is told of again
			limited, cancel := context.WithTimeout(ctx, deleteTime)
			err := m.other.Delete(limited, ref)
			cancel()
			switch {
			case errors.Is(err, image.ErrNotAllowed):
				if !m.other.told {
					m.log.Warn("images of functions that are gone stay in the registry, and are its operator's to remove", "registry", m.other.Host, "first", ref, "error", err)
				}
				m.other.told = true
			case err != nil:
				return err
			}
		}
		m.mu.Lock()
		delete(m.left, ref)
		m.mu.Unlock()
	}
	return nil
}
