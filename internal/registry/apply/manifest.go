package apply

import (
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"minik8s/internal/api"
	"minik8s/internal/registry/decode"
)

// Manifest is an applied manifest. A field that it leaves out must stay absent, so it is kept as a document.
type Manifest struct {
	Config *unstructured.Unstructured
	// Typed is the same manifest as an object.
	Typed api.Object
	// Warnings are for the client.
	Warnings []string
}

// ReadManifest reads a JSON manifest that is applied at a path. The errors are 400; with a decode.StrictError, Typed
// holds what could be read.
func ReadManifest(kind *api.Kind, namespace, name string, data []byte, validation string) (Manifest, error) {
	strictly := validation
	if strictly == metav1.FieldValidationIgnore {
		strictly = metav1.FieldValidationWarn // unknown fields must be found here, even if no one is warned
	}
	var says metav1.TypeMeta
	if err := json.Unmarshal(data, &says); err != nil || says.Kind == "" || says.APIVersion == "" {
		return Manifest{}, apierrors.NewBadRequest("apiVersion, kind: a manifest that is applied must say what it is: " + kind.APIVersion() + ", " + kind.Kind)
	}
	typed, unknown, err := decode.Manifest(kind, nil, data, strictly)
	m := Manifest{Typed: typed}
	if err != nil {
		return m, err
	}
	if validation != metav1.FieldValidationIgnore {
		m.Warnings = unknown
	}
	config := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &config.Object); err != nil {
		return m, apierrors.NewBadRequest("the manifest is not valid: " + err.Error())
	}
	dropTimes(config.Object)
	config.SetGroupVersionKind(kind.GVK())
	if given := config.GetName(); given != "" && given != name {
		return m, apierrors.NewBadRequest(fmt.Sprintf("metadata.name: %q is not the name of the path, %q", given, name))
	}
	config.SetName(name)
	if kind.Namespaced {
		if ns := config.GetNamespace(); ns != "" && ns != namespace {
			return m, apierrors.NewBadRequest(fmt.Sprintf("metadata.namespace: %q is not the namespace of the path, %q", ns, namespace))
		}
		config.SetNamespace(namespace)
	}
	if config.GetManagedFields() != nil {
		return m, apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	if len(unknown) > 0 { // the field manager would refuse them
		config, err = known(kind, typed, config)
	}
	m.Config = config
	return m, err
}

// dropTimes removes the empty creationTimestamp that older clients write in metadata, including a template's: no
// manager intends to own it.
func dropTimes(v any) {
	switch v := v.(type) {
	case map[string]any:
		if t, there := v["creationTimestamp"]; there && t == nil {
			delete(v, "creationTimestamp")
		}
		for _, below := range v {
			dropTimes(below)
		}
	case []any:
		for _, below := range v {
			dropTimes(below)
		}
	}
}

// known returns a configuration without the fields that its kind does not have.
func known(kind *api.Kind, typed api.Object, config *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(typed)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	var has map[string]any
	if err := json.Unmarshal(raw, &has); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	prune(config.Object, has)
	config.SetGroupVersionKind(kind.GVK())
	return config, nil
}

// prune removes from doc what the decoded object does not have.
func prune(doc, has any) {
	switch doc := doc.(type) {
	case map[string]any:
		had, _ := has.(map[string]any)
		for key, value := range doc {
			other, ok := had[key]
			if !ok {
				delete(doc, key)
				continue
			}
			prune(value, other)
		}
	case []any:
		had, _ := has.([]any)
		for i := range doc {
			if i < len(had) {
				prune(doc[i], had[i])
			}
		}
	}
}
