package storage

import (
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

// cutTimes makes the times in an object as precise as its bytes have them: seconds, and microseconds where Kubernetes says so.
// Without it who reads the object from memory would have another one than who reads its bytes.
func cutTimes(obj api.Object) {
	v := reflect.ValueOf(obj).Elem()
	if f := cutter(v.Type()); f != nil {
		f(v)
	}
}

var (
	timeType      = reflect.TypeFor[metav1.Time]()
	microTimeType = reflect.TypeFor[metav1.MicroTime]()

	cutters  sync.Map // reflect.Type -> cut
	cutterMu sync.Mutex
)

// cut cuts the times in a value; nil: there are none.
type cut func(reflect.Value)

// cutter is the cut of a type. It is made once, and what has no times is never looked at: most of a Pod.
func cutter(t reflect.Type) cut {
	if f, ok := cutters.Load(t); ok {
		return f.(cut)
	}
	cutterMu.Lock()
	defer cutterMu.Unlock()
	return making{}.cutter(t)
}

// making are the types whose cuts are being made.
type making map[reflect.Type]bool

func (m making) cutter(t reflect.Type) cut {
	if f, ok := cutters.Load(t); ok {
		return f.(cut)
	}
	if m[t] { // it has itself in it: what is made now is known when this is called
		return func(v reflect.Value) {
			if f := cutter(t); f != nil {
				f(v)
			}
		}
	}
	m[t] = true
	f := m.make(t)
	cutters.Store(t, f)
	return f
}

func (m making) make(t reflect.Type) cut {
	switch t {
	case timeType:
		return func(v reflect.Value) {
			if at := v.Addr().Interface().(*metav1.Time); at.Nanosecond() != 0 { // otherwise others may share it
				at.Time = at.Truncate(time.Second)
			}
		}
	case microTimeType:
		return func(v reflect.Value) {
			if at := v.Addr().Interface().(*metav1.MicroTime); at.Nanosecond()%1000 != 0 {
				at.Time = at.Truncate(time.Microsecond)
			}
		}
	}
	switch t.Kind() {
	case reflect.Pointer:
		if each := m.cutter(t.Elem()); each != nil {
			return func(v reflect.Value) {
				if !v.IsNil() {
					each(v.Elem())
				}
			}
		}
	case reflect.Slice:
		if each := m.cutter(t.Elem()); each != nil {
			return func(v reflect.Value) {
				for i := range v.Len() {
					each(v.Index(i))
				}
			}
		}
	case reflect.Struct:
		return m.ofStruct(t)
	}
	return nil
}

func (m making) ofStruct(t reflect.Type) cut {
	type field struct {
		at  int
		cut cut
	}
	var fields []field
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() {
			if each := m.cutter(f.Type); each != nil {
				fields = append(fields, field{i, each})
			}
		}
	}
	if fields == nil {
		return nil
	}
	return func(v reflect.Value) {
		for _, f := range fields {
			f.cut(v.Field(f.at))
		}
	}
}
