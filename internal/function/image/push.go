package image

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Registry is where images are pushed to.
type Registry struct {
	// Host is in the names of images, and Transport leads there.
	Host      string
	Transport http.RoundTripper
}

// BaseRepository has the base image, from which the layers of others are taken over.
const BaseRepository = "functions/base"

// PushBase pushes the base image, and returns one whose layers the registry is known to have.
func (r Registry) PushBase(ctx context.Context, base v1.Image) (v1.Image, error) {
	digest, err := base.Digest()
	if err != nil {
		return nil, err
	}
	ref, err := r.push(ctx, BaseRepository, base, digest)
	if err != nil {
		return nil, fmt.Errorf("the base image: %w", err)
	}
	layers, err := base.Layers()
	if err != nil {
		return nil, err
	}
	file, err := base.ConfigFile()
	if err != nil {
		return nil, err
	}
	bare := mutate.MediaType(empty.Image, kindOf(base))
	adds := make([]mutate.Addendum, 0, len(layers))
	for _, l := range layers {
		kind, err := l.MediaType()
		if err != nil {
			return nil, err
		}
		adds = append(adds, mutate.Addendum{Layer: &remote.MountableLayer{Layer: l, Reference: ref}, MediaType: kind})
	}
	img, err := mutate.Append(bare, adds...)
	if err != nil {
		return nil, err
	}
	now, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	cfg := file.DeepCopy()
	cfg.RootFS, cfg.History = now.RootFS, nil
	return mutate.ConfigFile(img, cfg)
}

// Push pushes an image, and returns its name with its digest.
func (r Registry) Push(ctx context.Context, repository string, img v1.Image) (string, error) {
	digest, err := img.Digest()
	if err != nil {
		return "", err
	}
	ref, err := r.push(ctx, repository, img, digest)
	if err != nil {
		return "", err
	}
	return ref.Name(), nil
}

func (r Registry) push(ctx context.Context, repository string, img v1.Image, digest v1.Hash) (name.Digest, error) {
	ref, err := name.NewDigest(r.Host+"/"+repository+"@"+digest.String(), name.StrictValidation)
	if err != nil {
		return ref, err
	}
	return ref, remote.Write(ref, img, remote.WithContext(ctx), remote.WithTransport(r.Transport), remote.WithJobs(2))
}

func kindOf(img v1.Image) types.MediaType {
	kind, err := img.MediaType()
	if err != nil {
		return types.OCIManifestSchema1
	}
	return kind
}
