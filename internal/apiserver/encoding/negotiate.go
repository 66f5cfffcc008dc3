package encoding

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

// Format is how an answer is encoded.
type Format int

// The formats.
const (
	JSON Format = iota
	YAML
	Protobuf
)

// What a client may ask for instead of the objects themselves.
const (
	Table               = "Table"
	PartialMetadata     = "PartialObjectMetadata"
	PartialMetadataList = "PartialObjectMetadataList"
	GroupDiscoveryList  = "APIGroupDiscoveryList"
)

// The media types of the formats.
const (
	JSONType     = "application/json"
	YAMLType     = "application/yaml"
	ProtobufType = "application/vnd.kubernetes.protobuf"
)

// MediaType is what the Accept header asks for.
type MediaType struct {
	Format Format
	As     string // "" for the objects themselves, or one of the constants: "Table"
	// Group and Version are those of As.
	Group, Version string
}

// NegotiateFor is Negotiate for objects of a kind, some of which have no protobuf encoding. The error is 406.
func NegotiateFor(kind *api.Kind, accept string) (MediaType, error) {
	m, err := Negotiate(accept)
	if err == nil && m.Format == Protobuf {
		if _, ok := kind.New().(protoMessage); !ok {
			return Negotiate(strings.ReplaceAll(accept, ProtobufType, "application/none"))
		}
	}
	return m, err
}

// NegotiatePlain is NegotiateFor for objects without metadata, which cannot be rows of a Table. If the Accept header
// also allows the object itself, that is sent. Otherwise the error is 406.
func NegotiatePlain(kind *api.Kind, accept string) (MediaType, error) {
	var plain []string
	for clause := range strings.SplitSeq(accept, ",") {
		if !strings.Contains(clause, "as=") {
			plain = append(plain, clause)
		}
	}
	if len(plain) == 0 {
		return MediaType{}, notAcceptable()
	}
	return NegotiateFor(kind, strings.Join(plain, ","))
}

func notAcceptable() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + JSONType + ", " + YAMLType + ", " + ProtobufType}}
}

// Negotiate takes the first clause of an Accept header that can be served; JSON if there is no header. The error is
// 406.
func Negotiate(accept string) (MediaType, error) {
	if accept == "" || accept == JSONType || accept == "*/*" {
		return MediaType{}, nil
	}
	for clause := range strings.SplitSeq(accept, ",") {
		if m, ok := parseClause(clause); ok && m.served() {
			return m, nil
		}
	}
	return MediaType{}, notAcceptable()
}

// parseClause reads one clause of an Accept header. It returns false if the media type is unknown.
func parseClause(clause string) (m MediaType, known bool) {
	params := strings.Split(clause, ";")
	switch strings.TrimSpace(params[0]) {
	case JSONType, "*/*", "application/*":
	case YAMLType, "text/yaml", "application/x-yaml":
		m.Format = YAML
	case ProtobufType:
		m.Format = Protobuf
	default:
		return m, false
	}
	for _, p := range params[1:] {
		switch key, value, _ := strings.Cut(strings.TrimSpace(p), "="); key {
		case "as":
			m.As = value
		case "g":
			m.Group = value
		case "v":
			m.Version = value
		}
	}
	return m, true
}

// served reports whether the API has answers of this media type.
func (m MediaType) served() bool {
	switch m.As {
	case "", PartialMetadata, PartialMetadataList:
		return true
	case Table:
		return m.Version == "v1" && m.Format != Protobuf
	case GroupDiscoveryList:
		return m.Version == "v2" && m.Format == JSON
	}
	return false
}

// ContentType returns the Content-Type header of an answer.
func (m MediaType) ContentType() string {
	switch m.Format {
	case YAML:
		return YAMLType
	case Protobuf:
		return ProtobufType
	}
	return JSONType
}

// StreamType returns the Content-Type header of a watch.
func (m MediaType) StreamType() string {
	if m.Format == Protobuf {
		return ProtobufType + ";stream=watch"
	}
	return m.ContentType()
}

var (
	protobufSerializer = protobuf.NewSerializer(api.Scheme, api.Scheme)
	protobufRaw        = protobuf.NewRawSerializer(api.Scheme, api.Scheme)
)

// protobufMagic begins every object in Kubernetes' protobuf.
var protobufMagic = []byte("k8s\x00")

// IsProtobuf reports whether a body is in Kubernetes' protobuf.
func IsProtobuf(data []byte) bool { return bytes.HasPrefix(data, protobufMagic) }

// DecodeProtobuf reads a body in Kubernetes' protobuf.
func DecodeProtobuf(data []byte, into runtime.Object) error {
	_, _, err := protobufSerializer.Decode(data, nil, into)
	return err
}

func encodeProtobuf(obj runtime.Object) ([]byte, error) {
	var buf bytes.Buffer
	if err := protobufSerializer.Encode(obj, &buf); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// Body converts a whole answer, which is JSON or protobuf, to the requested format.
func (m MediaType) Body(body []byte) ([]byte, error) {
	switch m.Format {
	case YAML:
		y, err := toYAML(body)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		return y, nil
	case JSON:
		return append(body, '\n'), nil
	}
	return body, nil
}

// toYAML converts a JSON answer to YAML.
func toYAML(json []byte) ([]byte, error) { return yaml.JSONToYAML(json) }

func partialMetadata(obj api.Object) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: PartialMetadata, APIVersion: "meta.k8s.io/v1"}}
	m.Name, m.Namespace, m.UID = obj.GetName(), obj.GetNamespace(), obj.GetUID()
	m.GenerateName, m.Generation, m.ResourceVersion = obj.GetGenerateName(), obj.GetGeneration(), obj.GetResourceVersion()
	m.CreationTimestamp, m.DeletionTimestamp = obj.GetCreationTimestamp(), obj.GetDeletionTimestamp()
	m.DeletionGracePeriodSeconds, m.Labels = obj.GetDeletionGracePeriodSeconds(), obj.GetLabels()
	m.Annotations, m.OwnerReferences, m.Finalizers = obj.GetAnnotations(), obj.GetOwnerReferences(), obj.GetFinalizers()
	m.ManagedFields = obj.GetManagedFields()
	return m
}
