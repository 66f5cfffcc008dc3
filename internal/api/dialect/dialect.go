package dialect

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"minik8s/internal/api"
)

// For returns the function that makes a manifest of the kind canonical, in place; nil if the kind has no dialect. Its
// notes have one line per change, and are nil if nothing was changed. It fails if the manifest gives two different
// values for the same thing.
func For(kind *api.Kind) func(doc map[string]any) (notes []string, err error) {
	return reader(kind, false)
}

// Patched is like For, but for a stored object to which a patch was applied. The stored object was canonical, so a seed
// system's word can only come from the patch. It therefore replaces the canonical value beside it.
func Patched(kind *api.Kind) func(doc map[string]any) (notes []string, err error) {
	return reader(kind, true)
}

func reader(kind *api.Kind, patched bool) func(doc map[string]any) ([]string, error) {
	var body func(*rewriter, map[string]any)
	switch kind {
	case api.Pods:
		body = pod
	case api.Nodes:
		body = node
	case api.ReplicaSets:
		body = replicaSet
	case api.Deployments, api.DaemonSets:
		body = template
	case api.Jobs:
		body = batchJob
	case api.GpuJobs:
		body = gpuJob
	case api.Workflows:
		body = workflow
	case api.Services:
		body = service
	case api.DNSes:
		body = dns
	case api.HorizontalPodAutoscalers, api.HorizontalPodAutoscalersV1, api.HorizontalPodAutoscalersV2beta2:
		body = autoscaler(kind)
	case api.Namespaces:
	default:
		return nil
	}
	return func(doc map[string]any) ([]string, error) {
		if doc == nil {
			return nil, nil
		}
		r := &rewriter{patched: patched}
		r.version(doc, kind)
		r.lift(doc, "name")
		if kind.Namespaced {
			r.lift(doc, "namespace")
		} else {
			r.noNamespace(doc, kind)
		}
		if body != nil {
			body(r, doc)
		}
		return r.notes, r.err
	}
}

// Identify returns the canonical apiVersion and kind of a whole manifest. If apiVersion is missing or not canonical, it
// follows from the kind. It fails if the kind is missing or unknown.
func Identify(doc map[string]any) (apiVersion, kind string, err error) {
	word, _ := doc["kind"].(string)
	if word == "" {
		return "", "", fmt.Errorf("kind: required; this version of minik8s serves %s", served())
	}
	given, isString := doc["apiVersion"].(string)
	if doc["apiVersion"] != nil && !isString {
		return "", "", fmt.Errorf("apiVersion: expected a string as in \"v1\", got %v", doc["apiVersion"])
	}
	plain := plainVersion(given)
	if strings.EqualFold(word, api.Jobs.Kind) && (plain == "" || plain == "v1") {
		k, err := jobOf(doc)
		if err != nil {
			return "", "", err
		}
		return k.APIVersion(), k.Kind, nil
	}
	var sameKind *api.Kind
	for _, k := range Known() {
		if !strings.EqualFold(k.Kind, word) {
			continue
		}
		if k.APIVersion() == plain {
			return plain, k.Kind, nil
		}
		if sameKind == nil {
			sameKind = k
		}
	}
	switch {
	case sameKind == nil:
		return "", "", fmt.Errorf("kind: %q is not served; this version of minik8s serves %s", word, served())
	case plain == "" || plain == "v1": // the seed systems write v1 for kinds of any group
		return sameKind.APIVersion(), sameKind.Kind, nil
	}
	return "", "", fmt.Errorf("apiVersion: %q is not served for kind %s; use %s", given, sameKind.Kind, sameKind.APIVersion())
}

// Known are the kinds of which there may be manifests: the stored ones, and the views that can be written.
func Known() []*api.Kind {
	out := slices.Clone(api.Kinds)
	for _, k := range api.Views {
		if k.View.Stored != nil {
			out = append(out, k)
		}
	}
	return out
}

// plainVersion removes path prefixes: "/api/v1" becomes v1, "/apis/apps/v1" becomes apps/v1.
func plainVersion(v string) string {
	v = strings.Trim(strings.TrimSpace(v), "/")
	for _, prefix := range []string{"apis/", "api/"} {
		if rest, ok := strings.CutPrefix(v, prefix); ok {
			return rest
		}
	}
	return v
}

// served lists the kinds, for a message.
func served() string {
	names := make([]string, len(api.Kinds))
	for i, k := range api.Kinds {
		names[i] = k.Kind + " (" + k.APIVersion() + ")"
	}
	return strings.Join(names, ", ")
}

// rewriter collects notes about what was changed in a document.
type rewriter struct {
	patched bool // see Patched
	notes   []string
	err     error
}

func (r *rewriter) note(path, format string, args ...any) {
	r.notes = append(r.notes, path+": "+fmt.Sprintf(format, args...))
}

func (r *rewriter) fail(path, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...))
	}
}

// version sets a missing apiVersion and corrects one that is not canonical. If the body has no kind, the path of the
// request decides, and nothing is changed here.
func (r *rewriter) version(doc map[string]any, kind *api.Kind) {
	if word, _ := doc["kind"].(string); word != kind.Kind {
		return
	}
	given, isString := doc["apiVersion"].(string)
	if doc["apiVersion"] != nil && !isString || given == kind.APIVersion() {
		return
	}
	if plain := plainVersion(given); plain == "" {
		doc["apiVersion"] = kind.APIVersion()
		r.note("apiVersion", "missing, %s was filled in", kind.APIVersion())
	} else if plain == "v1" { // the seed systems write v1 for kinds of any group
		doc["apiVersion"] = kind.APIVersion()
		r.note("apiVersion", "%q was read as %s", given, kind.APIVersion())
	} else if plain == kind.APIVersion() {
		doc["apiVersion"] = plain
		r.note("apiVersion", "%q was read as %s", given, plain)
	}
}

// lift moves a metadata field from the top of the document into metadata.
func (r *rewriter) lift(doc map[string]any, key string) {
	value, ok := doc[key].(string)
	if !ok {
		return
	}
	meta, isMap := doc["metadata"].(map[string]any)
	if doc["metadata"] != nil && !isMap {
		return
	}
	if meta == nil {
		meta = map[string]any{}
		doc["metadata"] = meta
	}
	switch there, _ := meta[key].(string); {
	case meta[key] == nil || there == "":
		meta[key] = value
	case there != value:
		r.fail(key, "it is %q here and %q in metadata", value, there)
		return
	}
	delete(doc, key)
	r.note(key, "moved to metadata.%s", key)
}

// noNamespace removes the namespace from objects of kinds without namespaces.
func (r *rewriter) noNamespace(doc map[string]any, kind *api.Kind) {
	if _, ok := doc["namespace"].(string); ok {
		delete(doc, "namespace")
		r.note("namespace", "dropped, a %s is in no namespace", kind.Kind)
	}
	meta := object(doc["metadata"])
	if _, ok := meta["namespace"]; ok {
		delete(meta, "namespace")
		r.note("metadata.namespace", "dropped, a %s is in no namespace", kind.Kind)
	}
}

// rename moves a value to the field's canonical name. A value already there wins, unless it is older than the patch.
func (r *rewriter) rename(m map[string]any, path, from, to string) {
	value, ok := m[from]
	if !ok {
		return
	}
	delete(m, from)
	if m[to] != nil && !r.patched {
		r.note(path+"."+from, "dropped, %s is given too", to)
		return
	}
	if s, ok := value.(string); ok {
		value = []any{s}
	}
	m[to] = value
	r.note(path+"."+from, "read as %s", to)
}

// move gives a field its canonical name. It fails if that has another value already, unless it is older than the patch.
func (r *rewriter) move(m map[string]any, path, from, to string) {
	value, ok := m[from]
	if !ok {
		return
	}
	if there := m[to]; there != nil && there != "" && !r.patched && !reflect.DeepEqual(there, value) {
		r.fail(path+"."+from, "it is %v here and %v in %s.%s", value, there, path, to)
		return
	}
	delete(m, from)
	m[to] = value
	r.note(path+"."+from, "read as %s", to)
}

// alias replaces a word by its canonical form.
func (r *rewriter) alias(m map[string]any, path, key string, words map[string]string) {
	if word, ok := m[key].(string); ok {
		if canonical, ok := words[word]; ok {
			m[key] = canonical
			r.note(path+"."+key, "%s read as %s", word, canonical)
		}
	}
}

// drop removes a field that has no meaning in minik8s.
func (r *rewriter) drop(m map[string]any, path, key, why string) {
	if _, ok := m[key]; ok {
		delete(m, key)
		r.note(path+"."+key, "dropped, %s", why)
	}
}

// number converts a number that is written as a string.
func (r *rewriter) number(m map[string]any, path, key string) {
	s, ok := m[key].(string)
	if !ok {
		return
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32); err == nil {
		m[key] = n
		r.note(path+"."+key, "%q read as the number %d", s, n)
	}
}

// object returns v as a map. If v is something else, it returns nil, which can be read like an empty map.
func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// list returns v as a list; nil if it is something else.
func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// scalar returns a number or a boolean as written in a manifest.
func scalar(v any) (string, bool) {
	switch x := v.(type) {
	case bool:
		return strconv.FormatBool(x), true
	case json.Number:
		return x.String(), true
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64), true
	case int64:
		return strconv.FormatInt(x, 10), true
	case int:
		return strconv.Itoa(x), true
	}
	return "", false
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
