package ctl

import (
	"encoding/json"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"minik8s/internal/api"
	"minik8s/internal/api/dialect"
	"minik8s/internal/client"
)

// document is one document of a manifest, understood.
type document struct {
	raw
	kind *api.Kind
	// canonical is doc in Kubernetes' form, where a seed's form was given.
	canonical       map[string]any
	namespace, name string
}

func (d *document) key() client.Key {
	return client.Key{Kind: d.kind, Namespace: d.namespace, Name: d.name}
}

// documents reads the files that -f names. A TYPE given on the command line, as the second seed's
// users do, must be that of every document.
func (s *session) documents(c *cli.Context, word string) ([]*document, error) {
	docs, err := s.readAll(c)
	if err != nil {
		return nil, err
	}
	var want *api.Kind
	if word != "" {
		if want, err = parseKind(word); err != nil {
			return nil, err
		}
	}
	var out []*document
	var bad []string
	for _, r := range docs {
		d, err := s.understand(r)
		switch {
		case err != nil:
			bad = append(bad, r.source+": "+err.Error())
		case want != nil && d.kind != want:
			bad = append(bad, r.source+": it is a "+d.kind.Kind+", where "+want.Kind+" was said")
		default:
			out = append(out, d)
		}
	}
	if len(bad) > 0 {
		// Before anything was sent: a manifest is applied as a whole or not begun.
		return nil, usagef("%s", strings.Join(bad, "\n"))
	}
	return out, nil
}

func (s *session) understand(r raw) (*document, error) {
	apiVersion, kindName, err := dialect.Identify(r.doc)
	if err != nil {
		return nil, err
	}
	kind := api.ByGVK(schema.FromAPIVersionAndKind(apiVersion, kindName))
	if kind == nil {
		return nil, usagef("there is no kind %s in %s. Kinds: %s", kindName, apiVersion, kindList())
	}
	d := &document{raw: r, kind: kind, canonical: runtime.DeepCopyJSON(r.doc)}
	if form := dialect.For(kind); form != nil {
		// Its notes come back from the server as warnings.
		if _, err := form(d.canonical); err != nil {
			return nil, err
		}
		if d.canonical, err = plain(d.canonical); err != nil {
			return nil, err
		}
	}
	d.canonical["apiVersion"], d.canonical["kind"] = apiVersion, kindName
	meta, _ := d.canonical["metadata"].(map[string]any)
	if meta == nil {
		return nil, usagef("metadata: it is missing")
	}
	d.name, _ = meta["name"].(string)
	generate, _ := meta["generateName"].(string)
	if d.name == "" && generate == "" {
		return nil, usagef("metadata.name: it is missing")
	}
	if !kind.Namespaced {
		// The seeds write one even on a Node.
		delete(meta, "namespace")
		return d, nil
	}
	d.namespace, _ = meta["namespace"].(string)
	switch {
	case d.namespace == "":
		d.namespace = s.namespace
	case s.given && d.namespace != s.namespace:
		return nil, usagef("metadata.namespace: it is %q, where -n says %q", d.namespace, s.namespace)
	}
	meta["namespace"] = d.namespace
	return d, nil
}

// plain is a document in the few types that JSON has, whatever a dialect put into it.
func plain(doc map[string]any) (map[string]any, error) {
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, utiljson.Unmarshal(data, &out)
}

// lastApplied is where kubectl and ctl both keep what was applied last.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// annotated is doc with the canonical document, as text, in its annotation: the base of the next
// apply, which compares in Kubernetes' form whatever form was sent.
func annotated(doc, canonical map[string]any) ([]byte, error) {
	base := runtime.DeepCopyJSON(canonical)
	delete(annotations(base), lastApplied)
	text, err := json.Marshal(base)
	if err != nil {
		return nil, err
	}
	out := runtime.DeepCopyJSON(doc)
	annotations(out)[lastApplied] = string(text) + "\n"
	return json.Marshal(out)
}

// annotations are those of a document, made if there are none.
func annotations(doc map[string]any) map[string]any {
	meta, ok := doc["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		doc["metadata"] = meta
	}
	notes, ok := meta["annotations"].(map[string]any)
	if !ok {
		notes = map[string]any{}
		meta["annotations"] = notes
	}
	return notes
}
