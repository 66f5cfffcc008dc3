package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"minik8s/internal/ctl/exit"
)

// raw is one document of a manifest, as written.
type raw struct {
	source string // "web.yaml", or "web.yaml, document 2"
	doc    map[string]any
}

// split splits a source into documents: at YAML's "---", and into the items of a List.
func split(source string, data []byte) ([]raw, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var parts [][]byte
	for {
		part, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		parts = append(parts, part)
	}
	var docs []raw
	for i, part := range parts {
		at := source
		if len(parts) > 1 {
			at = fmt.Sprintf("%s, document %d", source, i+1)
		}
		doc, err := decode(at, part)
		if err != nil {
			return nil, err
		}
		if doc != nil { // a document may have only comments
			docs = append(docs, items(raw{at, doc})...)
		}
	}
	return docs, nil
}

// decode reads one document; nil if it is empty.
func decode(at string, part []byte) (map[string]any, error) {
	// Strict: otherwise the second of two equal keys would silently win.
	text, err := yaml.YAMLToJSONStrict(part)
	if err != nil {
		return nil, exit.Failf(exit.Failed, "%s: %v", at, err)
	}
	var v any
	// The decoder of apimachinery keeps integers as integers.
	if err := utiljson.Unmarshal(text, &v); err != nil {
		return nil, exit.Failf(exit.Failed, "%s: %v", at, err)
	}
	if v == nil {
		return nil, nil
	}
	doc, ok := v.(map[string]any)
	if !ok {
		return nil, exit.Failf(exit.Failed, "%s: not an object with kind and metadata", at)
	}
	return doc, nil
}

// items returns the items of a List, or the document itself.
func items(r raw) []raw {
	list, ok := r.doc["items"].([]any)
	if kind, _ := r.doc["kind"].(string); !ok || kind != "List" {
		return []raw{r}
	}
	var docs []raw
	for n, item := range list {
		if doc, ok := item.(map[string]any); ok {
			docs = append(docs, raw{fmt.Sprintf("%s, item %d", r.source, n+1), doc})
		}
	}
	return docs
}
