package manifest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"minik8s/internal/api"
	"minik8s/internal/api/dialect"
	"minik8s/internal/client"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/target"
)

// Document is one document of a manifest, with its kind and name.
type Document struct {
	// Source is where it was read: "web.yaml, document 2".
	Source          string
	Kind            *api.Kind
	Namespace, Name string

	doc map[string]any // as it was written
	// canonical is doc in Kubernetes' form, if doc is in a seed system's form.
	canonical map[string]any
}

// Key returns the key of the document's object.
func (d *Document) Key() client.Key {
	return client.Key{Kind: d.Kind, Namespace: d.Namespace, Name: d.Name}
}

// Read reads the documents of files. Users of the second seed system give a kind on the command line: every document
// must then be of that kind. word is empty if none was given. It fails if any document has a mistake.
func Read(ctx context.Context, s *session.Session, files Files, word string) ([]*Document, error) {
	docs, err := readAll(ctx, s.Console, files)
	if err != nil {
		return nil, err
	}
	var want *api.Kind
	if word != "" {
		if want, err = target.Kind(ctx, s, word); err != nil {
			return nil, err
		}
	}
	var out []*Document
	var bad []string
	for _, r := range docs {
		d, err := understand(ctx, s, r)
		switch {
		case err != nil:
			bad = append(bad, r.source+": "+err.Error())
		case want != nil && d.Kind.Base() != want.Base() && !slices.Contains(target.Also(word), d.Kind):
			bad = append(bad, r.source+": it is a "+d.Kind.Kind+", where "+want.Kind+" was said")
		default:
			out = append(out, d)
		}
	}
	if len(bad) > 0 {
		// Nothing has been sent yet: a manifest with a mistake is not started.
		return nil, exit.Usagef("%s", strings.Join(bad, "\n"))
	}
	return out, nil
}

// Of is a document that was in no file; source says where it comes from.
func Of(ctx context.Context, s *session.Session, source string, doc map[string]any) (*Document, error) {
	return understand(ctx, s, raw{source: source, doc: doc})
}

// understand finds the kind of a document and converts it to Kubernetes' form.
func understand(ctx context.Context, s *session.Session, r raw) (*Document, error) {
	kind, err := identify(ctx, s, r.doc)
	if err != nil {
		return nil, err
	}
	d := &Document{Source: r.source, doc: r.doc, Kind: kind, canonical: runtime.DeepCopyJSON(r.doc)}
	if form := dialect.For(kind); form != nil {
		// The notes are dropped here, because the server sends them as warnings.
		if _, err := form(d.canonical); err != nil {
			return nil, err
		}
		if d.canonical, err = plain(d.canonical); err != nil {
			return nil, err
		}
	}
	d.canonical["apiVersion"], d.canonical["kind"] = kind.APIVersion(), kind.Kind
	return d, d.locate(s)
}

// identify returns the kind of a document: one that is compiled in, in any of the forms of the seed systems, or one that
// the server serves and that is named exactly.
func identify(ctx context.Context, s *session.Session, doc map[string]any) (*api.Kind, error) {
	apiVersion, kindName, err := dialect.Identify(doc)
	if err == nil {
		gvk := schema.FromAPIVersionAndKind(apiVersion, kindName)
		known := dialect.Known()
		return known[slices.IndexFunc(known, func(k *api.Kind) bool { return k.GVK() == gvk })], nil
	}
	apiVersion, _ = doc["apiVersion"].(string)
	kindName, _ = doc["kind"].(string)
	if apiVersion == "" || kindName == "" {
		return nil, err
	}
	served, _ := s.Served(ctx) // if it is not known, the kind is not either
	for _, k := range served {
		if k.APIVersion() == apiVersion && k.Kind == kindName {
			return k, nil
		}
	}
	return nil, err
}

// locate reads the name and namespace of a document's object; the session's namespace if it has none.
func (d *Document) locate(s *session.Session) error {
	meta, _ := d.canonical["metadata"].(map[string]any)
	if meta == nil {
		return exit.Usagef("metadata: it is missing")
	}
	d.Name, _ = meta["name"].(string)
	if generate, _ := meta["generateName"].(string); d.Name == "" && generate == "" {
		return exit.Usagef("metadata.name: it is missing")
	}
	if !d.Kind.Namespaced {
		// The seed systems write a namespace even on a Node.
		delete(meta, "namespace")
		return nil
	}
	d.Namespace, _ = meta["namespace"].(string)
	switch {
	case d.Namespace == "":
		d.Namespace = s.Namespace
	case s.NamespaceGiven && d.Namespace != s.Namespace:
		return exit.Usagef("metadata.namespace: it is %q, where -n says %q", d.Namespace, s.Namespace)
	}
	meta["namespace"] = d.Namespace
	return nil
}

// plain converts a document to JSON's types (maps, slices, strings, numbers), whatever types a dialect used.
func plain(doc map[string]any) (map[string]any, error) {
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, utiljson.Unmarshal(data, &out)
}
