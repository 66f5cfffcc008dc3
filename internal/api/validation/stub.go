package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
)

func ObjectMeta(obj api.Object, namespaced bool) field.ErrorList            { return nil }
func ObjectMetaUpdate(obj, old api.Object, namespaced bool) field.ErrorList { return nil }
