package table

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

type Layout string

func Columns(kind *api.Kind, l Layout) []metav1.TableColumnDefinition   { return nil }
func Row(kind *api.Kind, obj api.Object, l Layout, now time.Time) []any { return nil }
