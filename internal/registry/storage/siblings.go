package storage

import (
	"hash/maphash"
	"reflect"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

// siblings lets the objects of a kind share what is equal in them. The pods of a ReplicaSet have the same containers, volumes and
// labels, and a new version of an object has most of the old one's: most of a decoded object's memory is in such parts. It is safe
// because nobody changes an object in the cache.
type siblings struct {
	// fields are the indices of the fields that may be shared: strings, slices, maps and pointers.
	fields [][]int
	seed   maphash.Seed
	// newest holds the newest object of each family, until it is forgotten. Families are hashed to its places; of two that meet in one
	// the later takes it, which only costs sharing.
	newest [64]atomic.Pointer[api.Object]
}

func newSiblings(kind *api.Kind) *siblings {
	return &siblings{fields: shareable(reflect.TypeOf(kind.New()).Elem(), nil), seed: maphash.MakeSeed()}
}

// shareable are the indices of a struct's fields whose content is elsewhere, also of those in structs that are its fields.
func shareable(t reflect.Type, at []int) (out [][]int) {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		index := append(at[:len(at):len(at)], i)
		switch f.Type.Kind() {
		case reflect.Struct:
			out = append(out, shareable(f.Type, index)...)
		case reflect.String, reflect.Slice, reflect.Map, reflect.Pointer:
			out = append(out, index)
		}
	}
	return out
}

// share has obj use what is equal in prev, an earlier version of it that may be nil, or else in a sibling. Only obj's own struct is
// changed, nothing that it refers to, so its parts may be in use elsewhere; but nobody may know obj itself yet.
func (s *siblings) share(obj *api.Object, prev api.Object) {
	newest := s.placeOf(*obj)
	if prev == nil {
		if p := newest.Load(); p != nil {
			prev = *p
		}
	}
	if prev != nil {
		s.replace(*obj, prev)
	}
	newest.Store(obj) // now others may know it
}

// forget lets go of an object that was deleted or replaced: it may be a Secret.
func (s *siblings) forget(obj *api.Object) { s.placeOf(*obj).CompareAndSwap(obj, nil) }

// forgetAll lets go of all.
func (s *siblings) forgetAll() {
	for i := range s.newest {
		s.newest[i].Store(nil)
	}
}

// replace has obj use what is equal in another object.
func (s *siblings) replace(obj, like api.Object) {
	to, from := reflect.ValueOf(obj).Elem(), reflect.ValueOf(like).Elem()
	for _, index := range s.fields {
		a, b := to.FieldByIndex(index), from.FieldByIndex(index)
		if a.IsZero() || b.IsZero() {
			continue
		}
		if a.Kind() == reflect.String {
			if a.String() == b.String() {
				a.Set(b)
			}
		} else if a.Pointer() != b.Pointer() && reflect.DeepEqual(a.Interface(), b.Interface()) {
			a.Set(b)
		}
	}
}

// placeOf is the place of an object's family: of those with the same controller, or of those without one in the same namespace.
func (s *siblings) placeOf(obj api.Object) *atomic.Pointer[api.Object] {
	name := obj.GetNamespace()
	if by := metav1.GetControllerOfNoCopy(obj); by != nil {
		name = string(by.UID)
	}
	return &s.newest[maphash.String(s.seed, name)%uint64(len(s.newest))]
}
