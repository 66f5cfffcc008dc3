package apiserver_test

import (
	"encoding/json"
	"slices"
	"strings"
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

// TestOpenAPINamesSubresources: both documents have the paths of subresources, with their verbs and the schemas of
// what is sent there.
func TestOpenAPINamesSubresources(t *testing.T) {
	c := start(t)
	type operation struct {
		GVK    struct{ Group, Kind string } `json:"x-kubernetes-group-version-kind"`
		Action string                       `json:"x-kubernetes-action"`
	}
	for _, at := range []string{"/openapi/v3/api/v1", "/openapi/v2"} {
		_, body := c.do(c.root(), "GET", at, "")
		var doc struct {
			Paths map[string]map[string]json.RawMessage
		}
		if err := json.Unmarshal([]byte(body), &doc); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{
			"/api/v1/namespaces/{name}/status":                                    "get Namespace get, patch Namespace patch, put Namespace put",
			"/api/v1/namespaces/{name}/finalize":                                  "put Namespace put",
			"/api/v1/namespaces/{namespace}/pods/{name}/binding":                  "post Binding post",
			"/api/v1/namespaces/{namespace}/pods/{name}/eviction":                 "post Eviction post",
			"/api/v1/namespaces/{namespace}/pods/{name}/exec":                     "get PodExecOptions connect, post PodExecOptions connect",
			"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token":         "post TokenRequest post",
			"/api/v1/namespaces/{namespace}/replicationcontrollers/{name}/scale":  "get Scale get, patch Scale patch, put Scale put",
			"/api/v1/namespaces/{namespace}/replicationcontrollers":               "delete ReplicationController deletecollection, get ReplicationController list, post ReplicationController post",
			"/api/v1/namespaces/{namespace}/replicationcontrollers/{name}/status": "get ReplicationController get, patch ReplicationController patch, put ReplicationController put",
		} {
			var got []string
			for method, raw := range doc.Paths[path] {
				var op operation
				if method == "parameters" {
					continue
				}
				if err := json.Unmarshal(raw, &op); err != nil {
					t.Fatal(err)
				}
				got = append(got, method+" "+op.GVK.Kind+" "+op.Action)
			}
			slices.Sort(got)
			if s := strings.Join(got, ", "); s != want {
				t.Errorf("%s %s: %q, want %q", at, path, s, want)
			}
		}
		if !strings.Contains(body, `"io.k8s.api.autoscaling.v1.Scale":{`) || !strings.Contains(body, `"io.k8s.api.policy.v1.Eviction":{`) {
			t.Errorf("%s: no schema of Scale or Eviction", at)
		}
	}
}
