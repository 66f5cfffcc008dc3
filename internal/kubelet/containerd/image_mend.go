package containerd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/images"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// suspectAgain is how long an image that was found whole is not suspected again: to compare it takes as long as
// to unpack it, and most of what fails at once is a mistake in a command.
const suspectAgain = 10 * time.Minute

// quickEnd is how soon a program ends that cannot be executed.
const quickEnd = 5 * time.Second

// suspicious says that a container has ended as programs do whose files are damaged: they cannot be executed, or
// not loaded.
func suspicious(s state) bool {
	switch s.ExitCode {
	case 126, 127, 255, 128 + 4, 128 + 7, 128 + 11: // not executable, not found, runc's; SIGILL, SIGBUS, SIGSEGV
		return s.FinishedAt.Sub(s.StartedAt) < quickEnd
	}
	return false
}

// mendSuspect compares an image with what it was unpacked from, if that has not been done lately, and says
// whether it was damaged and is mended now.
func (r *Runtime) mendSuspect(ctx context.Context, ref string) bool {
	img, err := r.find(ctx, ref)
	if err != nil || img == nil {
		return false
	}
	l, err := r.read(ctx, img)
	if err != nil {
		r.dropIfDamaged(ctx, img, err)
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.compared) < suspectAgain {
		return false
	}
	l.compared = time.Now()
	mended, err := r.mendLayers(ctx, l, img, true)
	if err != nil {
		r.cfg.Log.Warn("a damaged image could not be mended", "image", img.Name, "err", err)
		r.dropIfDamaged(ctx, img, err)
		return false
	}
	if mended {
		l.compared = time.Time{}
		l.files.Clear()
	}
	return mended
}

// suspect is mendSuspect where nobody waits: the next attempt of the container finds the image mended.
func (r *Runtime) suspect(c *container) {
	if s, _ := c.get(); r.run == nil || c.meta.Image == "" || !suspicious(s) {
		return
	}
	r.wg.Go(func() {
		done, err := r.slowly(r.run)
		if err != nil {
			return
		}
		defer done()
		r.mendSuspect(r.run, c.meta.Image)
	})
}

// dropIfDamaged removes an image whose content is not what its names promise, so that it is pulled or imported
// again instead of being called present for ever.
func (r *Runtime) dropIfDamaged(ctx context.Context, img *images.Image, why error) {
	if !errors.Is(why, errDamaged) {
		if why = r.verifyContent(ctx, img); !errors.Is(why, errDamaged) {
			return
		}
	}
	r.cfg.Log.Error("an image is damaged and is removed; it has to be pulled or imported again", "image", img.Name, "err", why)
	if err := r.dropImage(ctx, img); err != nil {
		r.cfg.Log.Warn("a damaged image could not be removed", "image", img.Name, "err", err)
		return
	}
	r.archivesAgain()
}

// dropImage removes an image by all its names, its unpacked layers as far as nothing is above them, and the
// content that is damaged: another image that shares it lacks it then, and is found out the same way.
func (r *Runtime) dropImage(ctx context.Context, img *images.Image) error {
	cs := r.client.ContentStore()
	drop := func(d ocispec.Descriptor) error {
		if err := cs.Delete(ctx, d.Digest); err != nil && !errdefs.IsNotFound(err) {
			return err
		}
		return nil
	}
	err := images.Walk(ctx, images.HandlerFunc(func(ctx context.Context, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		if r.verifyBlob(ctx, d) != nil {
			return nil, drop(d)
		}
		return images.Children(ctx, cs, d)
	}), img.Target)
	if err != nil {
		return fmt.Errorf("containerd: image %s: %w", img.Name, err)
	}
	list, err := r.client.ImageService().List(ctx, "target.digest=="+img.Target.Digest.String())
	if err != nil {
		return fmt.Errorf("containerd: images: %w", err)
	}
	for _, i := range list {
		// Synchronously: what is collected is gone from the disk, and not taken for present by the next pull.
		if err := r.client.ImageService().Delete(ctx, i.Name, images.SynchronousDelete()); err != nil && !errdefs.IsNotFound(err) {
			return fmt.Errorf("containerd: image %s: %w", i.Name, err)
		}
	}
	r.images.mu.Lock()
	defer r.images.mu.Unlock()
	delete(r.images.by, img.Target.Digest)
	return nil
}
