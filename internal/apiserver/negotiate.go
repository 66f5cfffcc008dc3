package apiserver

import (
	"bytes"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
)

type format int

const (
	jsonFormat format = iota
	yamlFormat
	protobufFormat
)

// What a client may ask to get instead of the objects themselves.
const (
	asTable       = "Table"
	asPartial     = "PartialObjectMetadata"
	asPartialList = "PartialObjectMetadataList"
)

const (
	jsonType     = "application/json"
	yamlType     = "application/yaml"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// negotiated is what the Accept header asks for.
type negotiated struct {
	format format
	as     string // "", or one of the as constants
	group  string // of as
	ver    string
}

// negotiateFor is negotiate for objects of a kind, which may have no protobuf form.
func negotiateFor(kind *api.Kind, accept string) negotiated {
	n := negotiate(accept)
	if n.format == protobufFormat {
		if _, ok := kind.New().(protoMessage); !ok {
			return negotiate(strings.ReplaceAll(accept, protobufType, "application/none"))
		}
	}
	return n
}

// plain is for what has no metadata, and so no row in a table: it goes as itself, to who takes that too (406).
func (r *request) plain() error {
	if r.neg.as == "" {
		return nil
	}
	var rest []string
	for clause := range strings.SplitSeq(r.Request().Header.Get("Accept"), ",") {
		if !strings.Contains(clause, "as=") {
			rest = append(rest, clause)
		}
	}
	if len(rest) == 0 {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
			Message: "only the following media types are accepted: " + jsonType + ", " + yamlType + ", " + protobufType}}
	}
	r.neg = negotiateFor(r.kind, strings.Join(rest, ","))
	return nil
}

// negotiate takes the first clause of an Accept header that can be served; JSON if there is none.
func negotiate(accept string) negotiated {
	if accept == "" || accept == jsonType || accept == "*/*" {
		return negotiated{}
	}
	for clause := range strings.SplitSeq(accept, ",") {
		n := negotiated{}
		for i, p := range strings.Split(clause, ";") {
			p = strings.TrimSpace(p)
			k, v, _ := strings.Cut(p, "=")
			switch {
			case i > 0 && k == "as":
				n.as = v
			case i > 0 && k == "g":
				n.group = v
			case i > 0 && k == "v":
				n.ver = v
			case i > 0:
			case p == jsonType || p == "*/*" || p == "application/*":
			case p == yamlType || p == "text/yaml" || p == "application/x-yaml":
				n.format = yamlFormat
			case p == protobufType:
				n.format = protobufFormat
			default:
				n.as = "unknown"
			}
		}
		switch n.as {
		case "", asPartial, asPartialList:
			return n
		case asTable:
			if n.ver == "v1" && n.format != protobufFormat {
				return n
			}
		case "APIGroupDiscoveryList":
			if n.ver == "v2" && n.format == jsonFormat {
				return n
			}
		}
	}
	return negotiated{}
}

func (n negotiated) contentType() string {
	switch n.format {
	case yamlFormat:
		return yamlType
	case protobufFormat:
		return protobufType
	}
	return jsonType
}

// streamType is the content type of a watch.
func (n negotiated) streamType() string {
	if n.format == protobufFormat {
		return protobufType + ";stream=watch"
	}
	return n.contentType()
}

var (
	protobufSerializer = protobuf.NewSerializer(api.Scheme, api.Scheme)
	protobufRaw        = protobuf.NewRawSerializer(api.Scheme, api.Scheme)
)

// protobufMagic begins every object in Kubernetes' protobuf.
var protobufMagic = []byte("k8s\x00")

func encodeProtobuf(obj runtime.Object) ([]byte, error) {
	var buf bytes.Buffer
	if err := protobufSerializer.Encode(obj, &buf); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// toYAML makes YAML of a JSON answer.
func toYAML(json []byte) ([]byte, error) { return yaml.JSONToYAML(json) }

func partial(obj api.Object) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: asPartial, APIVersion: "meta.k8s.io/v1"}}
	m.Name, m.Namespace, m.UID = obj.GetName(), obj.GetNamespace(), obj.GetUID()
	m.GenerateName, m.Generation, m.ResourceVersion = obj.GetGenerateName(), obj.GetGeneration(), obj.GetResourceVersion()
	m.CreationTimestamp, m.DeletionTimestamp = obj.GetCreationTimestamp(), obj.GetDeletionTimestamp()
	m.DeletionGracePeriodSeconds, m.Labels = obj.GetDeletionGracePeriodSeconds(), obj.GetLabels()
	m.Annotations, m.OwnerReferences, m.Finalizers = obj.GetAnnotations(), obj.GetOwnerReferences(), obj.GetFinalizers()
	m.ManagedFields = obj.GetManagedFields()
	return m
}
