package image

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	ctrd "github.com/containerd/containerd"
	"github.com/containerd/containerd/content"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/images"
	docker "github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/identity"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"minik8s/internal/kubelet/cri"
)

// Image is an image on this node, from which containers are made.
type Image struct {
	ID      string // digest of its config
	ChainID string // the snapshot of all its layers
	Config  ocispec.ImageConfig

	target  digest.Digest
	size    int64
	files   sync.Map        // cache of small files, by name; see File
	diffIDs []digest.Digest // of its layers

	mu       sync.Mutex
	whole    bool      // its layers are known to be unpacked and synced
	compared time.Time // when its files were last compared with the stored content
}

// Compared is when the image's files were last compared with the stored content because a container had failed; zero
// if never, or if they differed.
func (i *Image) Compared() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.compared
}

// cache caches what is read from images, by digest, so entries never change.
type cache struct {
	mu sync.Mutex
	by map[digest.Digest]*Image
}

// normalize completes a reference by Docker's rule: the default registry is docker.io, the default owner library, the
// default tag latest.
func normalize(ref string) (string, error) {
	named, err := docker.ParseDockerRef(ref)
	if err != nil {
		return "", fmt.Errorf("%w: %q: %w", cri.ErrInvalidImageName, ref, err)
	}
	return named.String(), nil
}

// isID reports whether ref is an image's id and not a name.
func isID(ref string) bool {
	d, err := digest.Parse(ref)
	return err == nil && d.Algorithm() == digest.SHA256
}

// find is containerd's record of ref; nil if there is none.
func (s *Store) find(ctx context.Context, ref string) (*images.Image, error) {
	store := s.client.ImageService()
	if isID(ref) {
		return s.findBy(ctx, func(i *images.Image) bool {
			l, err := s.read(ctx, i)
			return err == nil && l.ID == ref
		})
	}
	name, err := normalize(ref)
	if err != nil {
		return nil, err
	}
	img, err := store.Get(ctx, name)
	if err == nil {
		return &img, nil
	}
	if !errdefs.IsNotFound(err) {
		return nil, fmt.Errorf("containerd: image %s: %w", name, err)
	}
	// An image that was pulled by its tag is also found by its digest.
	repo, dgst, ok := strings.Cut(name, "@")
	if !ok {
		return nil, nil
	}
	return s.findBy(ctx, func(i *images.Image) bool {
		return i.Target.Digest.String() == dgst && repository(i.Name) == repo
	})
}

func (s *Store) findBy(ctx context.Context, match func(*images.Image) bool) (*images.Image, error) {
	list, err := s.client.ImageService().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("containerd: images: %w", err)
	}
	for _, i := range list {
		if match(&i) {
			return &i, nil
		}
	}
	return nil, nil
}

// repository is a normalized reference without its tag and digest.
func repository(name string) string {
	named, err := docker.ParseNormalizedNamed(name)
	if err != nil {
		return name
	}
	return docker.TrimNamed(named).String()
}

// Get returns an image with all layers unpacked; nil if it is not on this node. ctx is from Containerd.Context.
func (s *Store) Get(ctx context.Context, ref string) (*Image, error) {
	img, err := s.find(ctx, ref)
	if img == nil || err != nil {
		return nil, err
	}
	l, err := s.read(ctx, img)
	if err == nil {
		err = s.completeLayers(ctx, l, img)
	}
	if err != nil {
		s.dropIfDamaged(ctx, img, err)
		return nil, err
	}
	return l, nil
}

// completeLayers unpacks the layers of an image that was recorded but not unpacked when an earlier run was killed,
// and checks layers that may not have been synced.
func (s *Store) completeLayers(ctx context.Context, l *Image, img *images.Image) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.whole {
		return nil
	}
	_, err := s.client.SnapshotService(s.snapshotter).Stat(ctx, l.ChainID)
	if errdefs.IsNotFound(err) {
		err = s.unpack(ctx, *img)
	}
	if err == nil {
		_, err = s.repairLayers(ctx, l, img, false)
	}
	if err != nil {
		return fmt.Errorf("containerd: image %s: %w", img.Name, err)
	}
	l.whole = true
	return nil
}

// read reads an image's manifest and config.
func (s *Store) read(ctx context.Context, img *images.Image) (*Image, error) {
	c := &s.cache
	c.mu.Lock()
	l := c.by[img.Target.Digest]
	c.mu.Unlock()
	if l != nil {
		return l, nil
	}
	i := ctrd.NewImage(s.client, *img)
	desc, err := i.Config(ctx)
	if err != nil {
		return nil, fmt.Errorf("containerd: image %s: %w", img.Name, err)
	}
	blob, err := content.ReadBlob(ctx, s.client.ContentStore(), desc)
	if err != nil {
		return nil, fmt.Errorf("containerd: image %s: %w", img.Name, err)
	}
	var config ocispec.Image
	if err := json.Unmarshal(blob, &config); err != nil {
		return nil, fmt.Errorf("containerd: image %s: config: %w", img.Name, err)
	}
	size, err := i.Size(ctx)
	if err != nil {
		return nil, fmt.Errorf("containerd: image %s: %w", img.Name, err)
	}
	l = &Image{
		ID: desc.Digest.String(), target: img.Target.Digest, size: size, Config: config.Config,
		diffIDs: config.RootFS.DiffIDs, ChainID: identity.ChainID(config.RootFS.DiffIDs).String(),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[digest.Digest]*Image{}
	}
	c.by[l.target] = l
	return l, nil
}

// ImageStatus implements cri.Images.
func (s *Store) ImageStatus(ctx context.Context, ref string) (*cri.Image, error) {
	ctx = s.cfg.Containerd.Context(ctx)
	img, err := s.find(ctx, ref)
	if img == nil || err != nil {
		return nil, err
	}
	return s.describe(ctx, img.Target.Digest)
}

// ListImages implements cri.Images.
func (s *Store) ListImages(ctx context.Context) ([]cri.Image, error) {
	ctx = s.cfg.Containerd.Context(ctx)
	list, err := s.client.ImageService().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("containerd: images: %w", err)
	}
	var out []cri.Image
	seen := map[digest.Digest]bool{}
	for _, i := range list {
		if seen[i.Target.Digest] {
			continue
		}
		seen[i.Target.Digest] = true
		d, err := s.describe(ctx, i.Target.Digest)
		if err != nil {
			// An image with damaged content must not hide the others.
			s.cfg.Log.Warn("an image cannot be read", "image", i.Name, "err", err)
			continue
		}
		out = append(out, *d)
	}
	return out, nil
}

// describe is the image of this digest with all its names.
func (s *Store) describe(ctx context.Context, target digest.Digest) (*cri.Image, error) {
	list, err := s.client.ImageService().List(ctx, "target.digest=="+target.String())
	if err != nil {
		return nil, fmt.Errorf("containerd: images: %w", err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("containerd: image %s: %w", target, cri.ErrImageNotFound)
	}
	l, err := s.read(ctx, &list[0])
	if err != nil {
		return nil, err
	}
	out := &cri.Image{ID: l.ID, Size: l.size, User: l.Config.User}
	for _, i := range list {
		if !strings.Contains(i.Name, "@") {
			out.Tags = append(out.Tags, i.Name)
		}
		if d := repository(i.Name) + "@" + target.String(); !slices.Contains(out.Digests, d) {
			out.Digests = append(out.Digests, d)
		}
	}
	slices.Sort(out.Tags)
	slices.Sort(out.Digests)
	return out, nil
}

// RemoveImage implements cri.Images. By its id an image is removed with all its names. It is not an error if it does
// not exist.
func (s *Store) RemoveImage(ctx context.Context, ref string) error {
	ctx = s.cfg.Containerd.Context(ctx)
	img, err := s.find(ctx, ref)
	if img == nil || err != nil {
		return err
	}
	names := []string{img.Name}
	if isID(ref) {
		list, err := s.client.ImageService().List(ctx, "target.digest=="+img.Target.Digest.String())
		if err != nil {
			return fmt.Errorf("containerd: images: %w", err)
		}
		for _, i := range list[:] {
			if i.Name != img.Name {
				names = append(names, i.Name)
			}
		}
	}
	for n, name := range names {
		var opts []images.DeleteOpt
		if n == len(names)-1 {
			opts = append(opts, images.SynchronousDelete())
		}
		if err := s.client.ImageService().Delete(ctx, name, opts...); err != nil && !errdefs.IsNotFound(err) {
			return fmt.Errorf("containerd: image %s: %w", name, err)
		}
	}
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	delete(s.cache.by, img.Target.Digest)
	return nil
}
