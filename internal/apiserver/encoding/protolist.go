package encoding

import (
	"encoding/binary"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"minik8s/internal/registry"
)

// protoMessage has the methods of Kubernetes types that can be written as protobuf.
type protoMessage interface {
	Size() int
	MarshalToSizedBuffer(into []byte) (int, error)
}

// protobufList encodes a list in Kubernetes' protobuf. The envelope of the message begins with its length, so the
// items are measured first; each is then encoded in place. All Kubernetes lists have their metadata in field 1 and
// their items in field 2.
func (enc *Encoder) protobufList(l *registry.List, lm metav1.ListMeta) (*List, error) {
	typ := metav1.TypeMeta{Kind: enc.Served().Kind + "List", APIVersion: enc.Served().APIVersion()}
	message := func(e *registry.Entry) (protoMessage, error) {
		e, err := enc.shown(e)
		if err != nil {
			return nil, err
		}
		m, ok := e.Object().(protoMessage)
		if !ok {
			return nil, apierrors.NewInternalError(fmt.Errorf("%s cannot be written as protobuf", enc.Kind))
		}
		return m, nil
	}
	if enc.As != "" {
		typ = metav1.TypeMeta{Kind: PartialMetadataList, APIVersion: "meta.k8s.io/v1"}
		message = func(e *registry.Entry) (protoMessage, error) { return partialMetadata(e.Object()), nil }
	}
	meta, err := lm.Marshal()
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	size, err := protobufSize(meta, l.Entries, message)
	if err != nil {
		return nil, err
	}
	return &List{
		Head: func(dst []byte) ([]byte, error) {
			// The envelope, runtime.Unknown: type, message, and at the end two empty fields.
			tm, err := (&runtime.TypeMeta{APIVersion: typ.APIVersion, Kind: typ.Kind}).Marshal()
			if err != nil {
				return dst, apierrors.NewInternalError(err)
			}
			dst = append(dst, protobufMagic...)
			dst = append(field(dst, 1, len(tm)), tm...)
			dst = field(dst, 2, size)
			return append(field(dst, 1, len(meta)), meta...), nil
		},
		Item: func(dst []byte, _ int, e *registry.Entry) ([]byte, error) {
			m, err := message(e)
			if err != nil {
				return dst, err
			}
			n := m.Size()
			dst = field(dst, 2, n)
			at := len(dst)
			dst = append(dst, make([]byte, n)...)
			_, err = m.MarshalToSizedBuffer(dst[at:])
			return dst, err
		},
		Tail: func(dst []byte, _ int) []byte { return field(field(dst, 3, 0), 4, 0) },
	}, nil
}

// protobufSize returns the length of a list's message: its metadata and its items.
func protobufSize(meta []byte, entries []*registry.Entry, message func(*registry.Entry) (protoMessage, error)) (int, error) {
	size := len(field(nil, 1, len(meta))) + len(meta)
	for _, e := range entries {
		m, err := message(e)
		if err != nil {
			return 0, err
		}
		n := m.Size()
		size += len(field(nil, 2, n)) + n
	}
	return size, nil
}

// field appends the head of a field that holds n bytes.
func field(dst []byte, number, n int) []byte {
	return binary.AppendUvarint(append(dst, byte(number<<3|2)), uint64(n))
}
