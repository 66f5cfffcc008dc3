package image

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/images"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"minik8s/internal/kubelet/work"
)

// compareAgain is how long an image that was found undamaged is not compared again. A comparison takes as long as
// unpacking, and most containers that fail at once have a mistake in their command.
const compareAgain = 10 * time.Minute

// Repair compares an image's files with the stored content, unless that was done lately, and reports whether they
// were damaged and are now repaired. ctx is from Containerd.Context.
func (s *Store) Repair(ctx context.Context, ref string) bool {
	img, err := s.find(ctx, ref)
	if err != nil || img == nil {
		return false
	}
	l, err := s.read(ctx, img)
	if err != nil {
		s.dropIfDamaged(ctx, img, err)
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.compared) < compareAgain {
		return false
	}
	l.compared = time.Now()
	repaired, err := s.repairLayers(ctx, l, img, true)
	if err != nil {
		s.cfg.Log.Warn("a damaged image could not be repaired", "image", img.Name, "err", err)
		s.dropIfDamaged(ctx, img, err)
		return false
	}
	if repaired {
		l.compared = time.Time{}
		l.files.Clear()
	}
	return repaired
}

// RepairLater is Repair in the background, so that the container's next attempt finds the image repaired.
func (s *Store) RepairLater(ref string) {
	s.wg.Go(func() {
		if s.cfg.Work.Acquire(s.run, work.Background) != nil {
			return
		}
		defer s.cfg.Work.Release()
		s.Repair(s.run, ref)
	})
}

// dropIfDamaged removes an image whose content does not have its digest, so that it is pulled or imported again
// instead of counting as present for ever.
func (s *Store) dropIfDamaged(ctx context.Context, img *images.Image, why error) {
	if !errors.Is(why, errDamaged) {
		if why = s.verifyContent(ctx, img); !errors.Is(why, errDamaged) {
			return
		}
	}
	s.cfg.Log.Error("an image is damaged and is removed; it has to be pulled or imported again", "image", img.Name, "err", why)
	if err := s.dropImage(ctx, img); err != nil {
		s.cfg.Log.Warn("a damaged image could not be removed", "image", img.Name, "err", err)
		return
	}
	s.reimportArchives()
}

// dropImage removes an image with all its names, its unpacked layers that no other layer is based on, and its damaged
// content. Another image that shares the content then lacks it, which is detected in the same way.
func (s *Store) dropImage(ctx context.Context, img *images.Image) error {
	cs := s.client.ContentStore()
	drop := func(d ocispec.Descriptor) error {
		if err := cs.Delete(ctx, d.Digest); err != nil && !errdefs.IsNotFound(err) {
			return err
		}
		return nil
	}
	err := images.Walk(ctx, images.HandlerFunc(func(ctx context.Context, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		if s.verifyBlob(ctx, d) != nil {
			return nil, drop(d)
		}
		return images.Children(ctx, cs, d)
	}), img.Target)
	if err != nil {
		return fmt.Errorf("containerd: image %s: %w", img.Name, err)
	}
	list, err := s.client.ImageService().List(ctx, "target.digest=="+img.Target.Digest.String())
	if err != nil {
		return fmt.Errorf("containerd: images: %w", err)
	}
	for _, i := range list {
		// Synchronously: the next pull must not find content that is about to be collected.
		if err := s.client.ImageService().Delete(ctx, i.Name, images.SynchronousDelete()); err != nil && !errdefs.IsNotFound(err) {
			return fmt.Errorf("containerd: image %s: %w", i.Name, err)
		}
	}
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	delete(s.cache.by, img.Target.Digest)
	return nil
}
