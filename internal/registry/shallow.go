package registry

import (
	"reflect"

	"minik8s/internal/api"
)

// shallow is a copy of the outermost struct only: its own metadata strings, everything behind
// pointers, maps and slices shared. Right for objects that nobody changes any more.
func shallow(obj api.Object) api.Object {
	src := reflect.ValueOf(obj).Elem()
	dst := reflect.New(src.Type())
	dst.Elem().Set(src)
	return dst.Interface().(api.Object)
}

// overwrite makes *dst what *src is; both are of one type.
func overwrite(dst, src api.Object) {
	reflect.ValueOf(dst).Elem().Set(reflect.ValueOf(src).Elem())
}
