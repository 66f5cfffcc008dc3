package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"minik8s/internal/imageaccess"
)

// Registry is where images are pushed to.
type Registry struct {
	// Host is in the names of images, with the path before their repositories if there is one; Transport leads there.
	Host      string
	Transport http.RoundTripper
	// Foreign is a registry of others: images have tags there, too, since some registries remove those that have none, and are not
	// pushed again where they are.
	Foreign bool
	// Plain allows plain HTTP.
	Plain bool
	// Logins are asked each time; nil: nobody has to log in.
	Logins func() (imageaccess.Logins, error)
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
	if _, err := r.push(ctx, repository, img, digest); err != nil {
		return "", err
	}
	return r.Name(repository, digest.String()), nil
}

// Name is an image's, by its digest.
func (r Registry) Name(repository, digest string) string {
	return r.Host + "/" + repository + "@" + digest
}

func (r Registry) push(ctx context.Context, repository string, img v1.Image, digest v1.Hash) (name.Digest, error) {
	ref, err := r.digest(r.Name(repository, digest.String()))
	if err != nil {
		return ref, err
	}
	opts, err := r.options(ctx, ref.Context())
	if err != nil {
		return ref, err
	}
	if !r.Foreign {
		return ref, remote.Write(ref, img, opts...)
	}
	// Some registries say of what they have not that nobody may see it: any answer but yes means that it is to be pushed.
	if _, err := remote.Head(ref, opts...); err == nil || statusOf(err) == 0 {
		return ref, err
	}
	return ref, remote.Write(ref.Context().Tag(digest.Hex), img, opts...)
}

// ErrNotAllowed means that the registry removes no image, or not for us.
var ErrNotAllowed = errors.New("the registry does not let its images be removed")

// Delete removes an image, by its name with its digest. One that is not there is removed.
func (r Registry) Delete(ctx context.Context, image string) error {
	ref, err := r.digest(image)
	if err != nil {
		return err
	}
	opts, err := r.options(ctx, ref.Context())
	if err != nil {
		return err
	}
	err = remote.Delete(ref, opts...)
	switch statusOf(err) {
	case http.StatusNotFound:
		return nil
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return fmt.Errorf("%w: %w", ErrNotAllowed, err)
	}
	return err
}

// ForAll reports whether an error of the registry is about no single image: it does not answer, is overloaded or damaged, or does not
// let us in.
func ForAll(err error) bool {
	switch status := statusOf(err); status {
	case 0, http.StatusUnauthorized, http.StatusTooManyRequests:
		return true
	default:
		return status >= http.StatusInternalServerError
	}
}

// Refused reports whether the registry does not let us do that: it knows nobody by the login that was given, or he may not.
func Refused(err error) bool {
	status := statusOf(err)
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// statusOf is the status that a registry has answered with; 0: it was none.
func statusOf(err error) int {
	if e := (*transport.Error)(nil); errors.As(err, &e) {
		return e.StatusCode
	}
	return 0
}

func (r Registry) digest(image string) (name.Digest, error) {
	opts := []name.Option{name.StrictValidation}
	if r.Plain {
		opts = append(opts, name.Insecure)
	}
	return name.NewDigest(image, opts...)
}

// options are those of every request; the login is the most specific one that fits.
func (r Registry) options(ctx context.Context, to name.Repository) ([]remote.Option, error) {
	opts := []remote.Option{remote.WithContext(ctx), remote.WithTransport(r.Transport), remote.WithJobs(2)}
	if r.Foreign { // who waits a while and tries again is the caller
		opts = append(opts, remote.WithUserAgent("minik8s"), remote.WithRetryBackoff(remote.Backoff{Duration: time.Second, Factor: 1, Steps: 2}))
	}
	if r.Logins == nil {
		return opts, nil
	}
	all, err := r.Logins()
	if err != nil {
		return nil, err
	}
	if fit := imageaccess.For(to.Name(), all); len(fit) > 0 {
		opts = append(opts, remote.WithAuth(authn.FromConfig(authn.AuthConfig{Username: fit[0].Username, Password: fit[0].Password, RegistryToken: fit[0].Token})))
	}
	return opts, nil
}

func kindOf(img v1.Image) types.MediaType {
	kind, err := img.MediaType()
	if err != nil {
		return types.OCIManifestSchema1
	}
	return kind
}
