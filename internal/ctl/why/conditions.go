package why

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

// conditionsOf returns an object's conditions. They have the same form in all kinds.
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
