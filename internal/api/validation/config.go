package validation

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxConfig is the maximum size of the data of a ConfigMap or a Secret.
const maxConfig = 1 << 20

// ConfigMap checks keys and size.
func ConfigMap(c *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		at := field.NewPath("data").Key(key)
		errs = append(errs, say(at, key, validation.IsConfigMapKey(key))...)
		if _, both := c.BinaryData[key]; both {
			errs = append(errs, field.Invalid(at, key, "duplicate of key present in binaryData"))
		}
		size += len(c.Data[key])
	}
	for _, key := range slices.Sorted(maps.Keys(c.BinaryData)) {
		errs = append(errs, say(field.NewPath("binaryData").Key(key), key, validation.IsConfigMapKey(key))...)
		size += len(c.BinaryData[key])
	}
	if size > maxConfig {
		errs = append(errs, field.TooLong(field.NewPath("data"), "", maxConfig))
	}
	return errs
}

// ConfigMapUpdate checks that an immutable ConfigMap does not change.
func ConfigMapUpdate(c, old *corev1.ConfigMap) field.ErrorList {
	if !isTrue(old.Immutable) {
		return nil
	}
	errs := stillImmutable(c.Immutable)
	if !apiequality.Semantic.DeepEqual(c.Data, old.Data) {
		errs = append(errs, field.Forbidden(field.NewPath("data"), whenImmutable))
	}
	if !apiequality.Semantic.DeepEqual(c.BinaryData, old.BinaryData) {
		errs = append(errs, field.Forbidden(field.NewPath("binaryData"), whenImmutable))
	}
	return errs
}

const whenImmutable = "field is immutable when `immutable` is set"

func isTrue(b *bool) bool { return b != nil && *b }

func stillImmutable(b *bool) field.ErrorList {
	if isTrue(b) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("immutable"), whenImmutable)}
}

// Secret checks keys, size, and what the secret's type requires.
func Secret(s *corev1.Secret) field.ErrorList {
	data := field.NewPath("data")
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		errs = append(errs, say(data.Key(key), key, validation.IsConfigMapKey(key))...)
		size += len(s.Data[key])
	}
	if size > maxConfig {
		errs = append(errs, field.TooLong(data, "", maxConfig))
	}
	has := func(key string) bool { _, ok := s.Data[key]; return ok }
	need := func(key string) {
		if !has(key) {
			errs = append(errs, field.Required(data.Key(key), "needed by a secret of type "+string(s.Type)))
		}
	}
	docker := func(key string) {
		need(key)
		if has(key) && !json.Valid(s.Data[key]) {
			errs = append(errs, field.Invalid(data.Key(key), "<secret contents redacted>", "must be valid JSON"))
		}
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		at := field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey)
		errs = append(errs, required(at, s.Annotations[corev1.ServiceAccountNameKey])...)
	case corev1.SecretTypeDockercfg:
		docker(corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		docker(corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		if !has(corev1.BasicAuthUsernameKey) && !has(corev1.BasicAuthPasswordKey) {
			need(corev1.BasicAuthUsernameKey)
			need(corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		need(corev1.SSHAuthPrivateKey)
		if key, ok := s.Data[corev1.SSHAuthPrivateKey]; ok && len(key) == 0 {
			errs = append(errs, field.Required(data.Key(corev1.SSHAuthPrivateKey), ""))
		}
	case corev1.SecretTypeTLS:
		need(corev1.TLSCertKey)
		need(corev1.TLSPrivateKeyKey)
	}
	return errs
}

// SecretUpdate checks that the type does not change, and that an immutable Secret does not change at all.
func SecretUpdate(s, old *corev1.Secret) field.ErrorList {
	var errs field.ErrorList
	if s.Type != old.Type {
		errs = append(errs, field.Invalid(field.NewPath("type"), s.Type, "field is immutable"))
	}
	if !isTrue(old.Immutable) {
		return errs
	}
	errs = append(errs, stillImmutable(s.Immutable)...)
	if !apiequality.Semantic.DeepEqual(s.Data, old.Data) {
		errs = append(errs, field.Forbidden(field.NewPath("data"), whenImmutable))
	}
	return errs
}
