package volume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/kubelet/objects"
)

// Source has the content of volumes that follow objects or the pod itself. What it returns may be shared and must not
// be changed. The error is an *objects.Missing for what does not exist.
type Source interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	// Field is what a fieldRef in a file names.
	Field(pod *corev1.Pod, path string) (string, error)
	Resource(pod *corev1.Pod, ref *corev1.ResourceFieldSelector) (string, error)
	// Token is a token of the pod's service account that is not about to expire.
	Token(ctx context.Context, pod *corev1.Pod, ask *corev1.ServiceAccountTokenProjection) (string, error)
}

// file is what a projected file is to be.
type file struct {
	data []byte
	mode os.FileMode
}

// payload has all files of a projected volume, by path.
type payload map[string]file

const defaultFileMode = 0o644

func modeOf(mode, otherwise *int32) os.FileMode {
	switch {
	case mode != nil:
		return os.FileMode(*mode)
	case otherwise != nil:
		return os.FileMode(*otherwise)
	}
	return defaultFileMode
}

// pick makes the files of an object's keys: of all keys, or of the items. missing makes the error for a key that does
// not exist; nil: it is left out.
func pick(data map[string][]byte, items []corev1.KeyToPath, mode *int32, missing func(key string) error) (payload, error) {
	out := payload{}
	if len(items) == 0 {
		for key, value := range data {
			out[key] = file{value, modeOf(nil, mode)}
		}
		return out, nil
	}
	for _, item := range items {
		value, ok := data[item.Key]
		if !ok {
			if missing == nil {
				continue
			}
			return nil, missing(item.Key)
		}
		out[item.Path] = file{value, modeOf(item.Mode, mode)}
	}
	return out, nil
}

// answered reports whether the API has said that there is no such content: then the volume cannot be made.
func answered(err error) bool {
	var status apierrors.APIStatus
	if absent(err) || !errors.As(err, &status) {
		return absent(err)
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false // it says nothing about the content
	default:
		return code < http.StatusInternalServerError
	}
}

func isOptional(optional *bool) bool { return optional != nil && *optional }

func absent(err error) bool {
	var missing *objects.Missing
	return errors.As(err, &missing)
}

func fromConfigMap(ctx context.Context, from Source, namespace, name string, items []corev1.KeyToPath, mode *int32, may *bool) (payload, error) {
	m, err := from.ConfigMap(ctx, namespace, name)
	if err != nil {
		if absent(err) && isOptional(may) {
			return payload{}, nil
		}
		return nil, err
	}
	data := maps.Clone(m.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for key, value := range m.Data {
		data[key] = []byte(value)
	}
	return pick(data, items, mode, missingKey(objects.Ref{Kind: api.ConfigMaps, Namespace: namespace, Name: name}, may))
}

func fromSecret(ctx context.Context, from Source, namespace, name string, items []corev1.KeyToPath, mode *int32, may *bool) (payload, error) {
	s, err := from.Secret(ctx, namespace, name)
	if err != nil {
		if absent(err) && isOptional(may) {
			return payload{}, nil
		}
		return nil, err
	}
	return pick(s.Data, items, mode, missingKey(objects.Ref{Kind: api.Secrets, Namespace: namespace, Name: name}, may))
}

func missingKey(ref objects.Ref, optional *bool) func(string) error {
	if isOptional(optional) {
		return nil
	}
	return func(key string) error { return &objects.Missing{Ref: ref, Key: key} }
}

func fromPod(from Source, pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, mode *int32) (payload, error) {
	out := payload{}
	for _, item := range items {
		value, err := "", error(nil)
		if item.FieldRef != nil {
			value, err = from.Field(pod, item.FieldRef.FieldPath)
		} else if item.ResourceFieldRef != nil {
			value, err = from.Resource(pod, item.ResourceFieldRef)
		}
		if err != nil {
			return nil, err
		}
		out[item.Path] = file{[]byte(value), modeOf(item.Mode, mode)}
	}
	return out, nil
}

// contentOf is what a volume of one of the projected kinds is to hold now.
func contentOf(ctx context.Context, from Source, pod *corev1.Pod, v *corev1.Volume) (payload, error) {
	ns := pod.Namespace
	switch {
	case v.ConfigMap != nil:
		c := v.ConfigMap
		return fromConfigMap(ctx, from, ns, c.Name, c.Items, c.DefaultMode, c.Optional)
	case v.Secret != nil:
		s := v.Secret
		return fromSecret(ctx, from, ns, s.SecretName, s.Items, s.DefaultMode, s.Optional)
	case v.DownwardAPI != nil:
		return fromPod(from, pod, v.DownwardAPI.Items, v.DownwardAPI.DefaultMode)
	}
	out := payload{}
	var errs []error
	for i := range v.Projected.Sources {
		one, err := contentOfSource(ctx, from, pod, &v.Projected.Sources[i], v.Projected.DefaultMode)
		if err != nil {
			errs = append(errs, err)
		}
		maps.Copy(out, one) // the later source wins
	}
	return out, errors.Join(errs...)
}

func contentOfSource(ctx context.Context, from Source, pod *corev1.Pod, s *corev1.VolumeProjection, mode *int32) (payload, error) {
	switch {
	case s.ConfigMap != nil:
		return fromConfigMap(ctx, from, pod.Namespace, s.ConfigMap.Name, s.ConfigMap.Items, mode, s.ConfigMap.Optional)
	case s.Secret != nil:
		return fromSecret(ctx, from, pod.Namespace, s.Secret.Name, s.Secret.Items, mode, s.Secret.Optional)
	case s.DownwardAPI != nil:
		return fromPod(from, pod, s.DownwardAPI.Items, mode)
	case s.ServiceAccountToken != nil:
		return fromAccount(ctx, from, pod, s.ServiceAccountToken, mode)
	}
	return nil, errors.New("a source of a projected volume is not supported: only configMap, secret, downwardAPI and serviceAccountToken are")
}

// fromAccount is the file with a token. Where a group owns the volume, other users cannot read it.
func fromAccount(ctx context.Context, from Source, pod *corev1.Pod, ask *corev1.ServiceAccountTokenProjection, mode *int32) (payload, error) {
	token, err := from.Token(ctx, pod, ask)
	if err != nil {
		return nil, fmt.Errorf("failed to fetch token: %w", err)
	}
	f := file{[]byte(token), modeOf(nil, mode)}
	if sc := pod.Spec.SecurityContext; sc != nil && sc.FSGroup != nil {
		f.mode = 0o600
	}
	return payload{ask.Path: f}, nil
}

// holdsSecrets reports whether a volume must not be written to a disk.
func holdsSecrets(v *corev1.Volume) bool {
	if v.Projected != nil {
		for i := range v.Projected.Sources {
			if s := v.Projected.Sources[i]; s.Secret != nil || s.ServiceAccountToken != nil {
				return true
			}
		}
	}
	return v.Secret != nil
}

// setUpProjected writes a volume's present content. A container sees either all of the old content or all of the new. What
// cannot be read now, because no API is reached, stays as it was written before: by an earlier run of the daemon, too.
func setUpProjected(ctx context.Context, from Source, pod *corev1.Pod, v *corev1.Volume, dir string) error {
	want, err := contentOf(ctx, from, pod, v)
	if err != nil && !answered(err) && written(dir) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if holdsSecrets(v) && os.Geteuid() == 0 {
		if err := mountTmpfs(dir, 0); err != nil {
			return err
		}
	}
	group := -1
	if sc := pod.Spec.SecurityContext; sc != nil && sc.FSGroup != nil {
		group = int(*sc.FSGroup)
	}
	return write(dir, want, group)
}
