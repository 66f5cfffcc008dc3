package storage

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

// settle makes an object one that many can read at once, and that is what its bytes say:
//
//   - Times are as precise as the bytes have them: seconds, and microseconds where Kubernetes says so.
//   - Quantities have their text. They make it when it is asked for, as by protobuf's encoder, and keep it, which is a write. Those in maps
//     are copied by who reads them.
func settle(obj api.Object) {
	v := reflect.ValueOf(obj).Elem()
	if f := settlerOf(v.Type()); f != nil {
		f(v)
	}
}

var (
	timeType      = reflect.TypeFor[metav1.Time]()
	microTimeType = reflect.TypeFor[metav1.MicroTime]()
	quantityType  = reflect.TypeFor[resource.Quantity]()

	settlers  sync.Map // reflect.Type -> settler
	settlerMu sync.Mutex
)

// settler settles a value.
type settler func(reflect.Value)

// settlerOf is the settler of a type; nil: there is nothing to settle. It is made once, and what needs none is never looked at: most of a Pod.
func settlerOf(t reflect.Type) settler {
	if f, ok := settlers.Load(t); ok {
		return f.(settler)
	}
	settlerMu.Lock()
	defer settlerMu.Unlock()
	return making{}.settlerOf(t)
}

// making are the types whose settlers are being made.
type making map[reflect.Type]bool

func (m making) settlerOf(t reflect.Type) settler {
	if f, ok := settlers.Load(t); ok {
		return f.(settler)
	}
	if m[t] { // it has itself in it: what is made now is known when this is called
		return func(v reflect.Value) {
			if f := settlerOf(t); f != nil {
				f(v)
			}
		}
	}
	m[t] = true
	f := m.make(t)
	settlers.Store(t, f)
	return f
}

func (m making) make(t reflect.Type) settler {
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
	case quantityType:
		return func(v reflect.Value) { _ = v.Addr().Interface().(*resource.Quantity).String() } // no write if it has its text
	}
	switch t.Kind() {
	case reflect.Pointer:
		if each := m.settlerOf(t.Elem()); each != nil {
			return func(v reflect.Value) {
				if !v.IsNil() {
					each(v.Elem())
				}
			}
		}
	case reflect.Slice:
		if each := m.settlerOf(t.Elem()); each != nil {
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

func (m making) ofStruct(t reflect.Type) settler {
	type field struct {
		at     int
		settle settler
	}
	var fields []field
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() {
			if each := m.settlerOf(f.Type); each != nil {
				fields = append(fields, field{i, each})
			}
		}
	}
	if fields == nil {
		return nil
	}
	return func(v reflect.Value) {
		for _, f := range fields {
			f.settle(v.Field(f.at))
		}
	}
}
