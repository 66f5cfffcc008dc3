package apiserver_test

import (
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
	openapi "k8s.io/kube-openapi/pkg/util/proto"
)

// TestOpenAPIv2: what client-go reads of the older document: every kind with its fields, in protobuf and in JSON.
func TestOpenAPIv2(t *testing.T) {
	c := start(t)
	_, body := c.do(c.root(), "GET", "/openapi/v2", "", "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
	doc := &openapi_v2.Document{}
	if err := proto.Unmarshal([]byte(body), doc); err != nil {
		t.Fatal(err)
	}
	_, body = c.do(c.root(), "GET", "/openapi/v2", "")
	again, err := openapi_v2.ParseDocument([]byte(body))
	if err != nil || !proto.Equal(doc, again) {
		t.Errorf("JSON and protobuf are two documents: %v", err)
	}
	models, err := openapi.NewOpenAPIData(doc)
	if err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]string{"io.k8s.api.core.v1.Pod": "Pod", "io.k8s.api.apps.v1.Deployment": "Deployment", "minik8s.internal.api.minik8s.ClusterConfig": "ClusterConfig"} {
		m := models.LookupModel(name)
		if m == nil {
			t.Errorf("no model %s; there are %v", name, models.ListModels())
			continue
		}
		k, ok := m.(*openapi.Kind)
		if !ok || k.Fields["spec"] == nil || k.Fields["metadata"] == nil {
			t.Errorf("%s has no fields: %+v", name, m)
		}
		gvks, _ := m.GetExtensions()["x-kubernetes-group-version-kind"].([]any)
		if len(gvks) != 1 {
			t.Errorf("%s names no kind: %v (%s)", name, m.GetExtensions(), schema.GroupVersionKind{Kind: kind})
		}
	}
}
