package why

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

// conditionsOf are an object's conditions, whatever its kind: they look alike in all.
func conditionsOf(obj api.Object) []metav1.Condition {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil
	}
	var v struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if json.Unmarshal(data, &v) != nil {
		return nil
	}
	return v.Status.Conditions
}
