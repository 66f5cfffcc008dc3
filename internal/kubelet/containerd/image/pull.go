package image

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	ctrd "github.com/containerd/containerd"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/images"
	"github.com/containerd/containerd/remotes"
	"github.com/containerd/containerd/remotes/docker"
	remoteerrors "github.com/containerd/containerd/remotes/errors"
	"github.com/containerd/containerd/snapshots"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"minik8s/internal/imageaccess"
	"minik8s/internal/kubelet/cri"
)

// progressEvery is how often the progress of a pull is reported.
const progressEvery = 500 * time.Millisecond

// pulls are those in progress, by reference and login.
type pulls struct {
	mu sync.Mutex
	by map[pullKey]*pull
}

type pullKey struct {
	ref  string
	auth cri.Auth
}

// pull is a pull that any number of callers wait for. It is cancelled when none is left.
type pull struct {
	cancel   context.CancelFunc
	done     chan struct{}
	image    *cri.Image
	err      error
	waiting  int
	progress map[*func(cri.Progress)]struct{}
}

// PullImage implements cri.Images.
func (s *Store) PullImage(ctx context.Context, ref string, auth *cri.Auth, progress func(cri.Progress)) (*cri.Image, error) {
	name, err := normalize(ref)
	if err != nil {
		return nil, err
	}
	key := pullKey{ref: name}
	if auth != nil {
		key.auth = *auth
	}
	p := s.joinPull(ctx, key, &progress)
	defer s.leavePull(key, p, &progress)
	select {
	case <-p.done:
		return p.image, p.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// joinPull adds a caller to the pull of that key, and starts it if there is none.
func (s *Store) joinPull(ctx context.Context, key pullKey, progress *func(cri.Progress)) *pull {
	ps := &s.pulls
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.by == nil {
		ps.by = map[pullKey]*pull{}
	}
	p := ps.by[key]
	if p == nil {
		// It does not end with its first caller's ctx, but when no caller waits for it any more.
		run, cancel := context.WithCancel(s.cfg.Containerd.Context(context.WithoutCancel(ctx)))
		p = &pull{cancel: cancel, done: make(chan struct{}), progress: map[*func(cri.Progress)]struct{}{}}
		ps.by[key] = p
		go func() {
			p.image, p.err = s.pull(run, key, p)
			cancel()
			ps.forget(key, p)
			close(p.done)
		}()
	}
	p.waiting++
	if *progress != nil {
		p.progress[progress] = struct{}{}
	}
	return p
}

// leavePull removes a caller, and cancels the pull if no other waits for it.
func (s *Store) leavePull(key pullKey, p *pull, progress *func(cri.Progress)) {
	s.pulls.mu.Lock()
	delete(p.progress, progress)
	p.waiting--
	last := p.waiting == 0
	s.pulls.mu.Unlock()
	if last {
		p.cancel()
		s.pulls.forget(key, p)
	}
}

// forget drops a pull, so that the next caller starts a new one.
func (ps *pulls) forget(key pullKey, p *pull) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.by[key] == p {
		delete(ps.by, key)
	}
}

func (s *Store) pull(ctx context.Context, key pullKey, p *pull) (*cri.Image, error) {
	var mu sync.Mutex
	sizes := map[string]int64{} // by digest, of what the image consists of
	seen := images.HandlerFunc(func(_ context.Context, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		if images.IsLayerType(d.MediaType) || images.IsConfigType(d.MediaType) {
			mu.Lock()
			sizes[d.Digest.String()] = d.Size
			mu.Unlock()
		}
		return nil, nil
	})
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watchPull(watching, key.ref, p, func() map[string]int64 {
			mu.Lock()
			defer mu.Unlock()
			copied := make(map[string]int64, len(sizes))
			for k, v := range sizes {
				copied[k] = v
			}
			return copied
		})
	}()
	img, err := s.client.Pull(ctx, key.ref, ctrd.WithResolver(s.resolver(key.auth)), ctrd.WithImageHandler(seen),
		ctrd.WithPullUnpack, ctrd.WithPullSnapshotter(s.snapshotter, snapshots.WithLabels(map[string]string{syncedLabel: "1"})), ctrd.WithUnpackOpts(unpackOpts()))
	stop()
	<-watched
	if err != nil {
		return nil, pullError(key.ref, err)
	}
	if err := s.sync(); err != nil {
		return nil, err
	}
	return s.describe(ctx, img.Target().Digest)
}

// watchPull reports the progress of a pull, by what the content store has received.
func (s *Store) watchPull(ctx context.Context, ref string, p *pull, sizes func() map[string]int64) {
	t := time.NewTicker(progressEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		want := sizes()
		pr := cri.Progress{Ref: ref}
		pending := map[string]int64{}
		if list, err := s.client.ContentStore().ListStatuses(ctx); err == nil {
			for _, s := range list {
				for d := range want {
					if strings.Contains(s.Ref, d) {
						pending[d] = s.Offset
					}
				}
			}
		}
		for d, size := range want {
			pr.Total += size
			if n, ok := pending[d]; ok {
				pr.Done += n
			} else if _, err := s.client.ContentStore().Info(ctx, digest.Digest(d)); err == nil {
				pr.Done += size
			}
		}
		s.pulls.mu.Lock()
		fns := make([]func(cri.Progress), 0, len(p.progress))
		for f := range p.progress {
			fns = append(fns, *f)
		}
		s.pulls.mu.Unlock()
		for _, f := range fns {
			f(pr)
		}
	}
}

// resolver talks to registries by HTTPS, but by HTTP to those on loopback and the configured ones.
func (s *Store) resolver(auth cri.Auth) remotes.Resolver {
	creds := func(string) (string, string, error) {
		if auth.Token != "" {
			return "", auth.Token, nil
		}
		return auth.Username, auth.Password, nil
	}
	others := docker.ConfigureDefaultRegistries(
		docker.WithAuthorizer(docker.NewDockerAuthorizer(docker.WithAuthCreds(creds))),
		docker.WithPlainHTTP(func(host string) (bool, error) { return imageaccess.Plain(host, s.cfg.InsecureRegistries), nil }),
	)
	return docker.NewResolver(docker.ResolverOptions{Hosts: func(host string) ([]docker.RegistryHost, error) {
		if way, ok := s.cfg.Registries[host]; ok {
			return []docker.RegistryHost{{Client: way.Client, Scheme: way.Scheme, Host: way.Host, Path: "/v2", Capabilities: docker.HostCapabilityPull | docker.HostCapabilityResolve}}, nil
		}
		return others(host)
	}})
}

// pullError wraps the error of package cri that fits err.
func pullError(ref string, err error) error {
	kind := func(kind error) error { return fmt.Errorf("containerd: pull %s: %w: %w", ref, kind, err) }
	var status remoteerrors.ErrUnexpectedStatus
	var netErr net.Error
	var urlErr *url.Error
	switch {
	case errors.As(err, &status) && (status.StatusCode == http.StatusUnauthorized || status.StatusCode == http.StatusForbidden),
		errors.Is(err, docker.ErrInvalidAuthorization),
		strings.Contains(err.Error(), "authorization failed"), strings.Contains(err.Error(), "insufficient_scope"):
		return kind(cri.ErrImageUnauthorized)
	case errdefs.IsNotFound(err), errors.As(err, &status) && status.StatusCode == http.StatusNotFound:
		return kind(cri.ErrImageNotFound)
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &netErr), errors.As(err, &urlErr), errors.As(err, &status) && status.StatusCode >= 500,
		errors.Is(err, context.DeadlineExceeded):
		return kind(cri.ErrRegistryUnavailable)
	}
	return fmt.Errorf("containerd: pull %s: %w", ref, err)
}
