package apiserver_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/aggregation"
	"minik8s/internal/apiserver"
	"minik8s/internal/registry"
)

// tides is a tiny group that is answered in process: the height of the water in each namespace's harbours.
func tides() aggregation.Group {
	harbour := func(ns, name string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "Harbour", APIVersion: "tides.example.org/v1beta1"},
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"name": name}, Annotations: map[string]string{"height": "2m"}}}
	}
	gr := schema.GroupResource{Group: "tides.example.org", Resource: "harbours"}
	table := func(items ...metav1.PartialObjectMetadata) func() *metav1.Table {
		return func() *metav1.Table {
			t := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name", Type: "string"}, {Name: "Height", Type: "string"}}}
			for i := range items {
				row := metav1.TableRow{Cells: []any{items[i].Name, "2m"}}
				row.Object.Object = &items[i]
				t.Rows = append(t.Rows, row)
			}
			return t
		}
	}
	return aggregation.Group{Group: "tides.example.org", Version: "v1beta1",
		Resources: func() []metav1.APIResource {
			return []metav1.APIResource{
				{Name: "harbours", SingularName: "harbour", Kind: "Harbour", Namespaced: true, ShortNames: []string{"hb"}, Verbs: metav1.Verbs{"get", "list", "watch"}},
				{Name: "harbours/level", Kind: "Level", Namespaced: true, Verbs: metav1.Verbs{"get"}},
				{Name: "moons", SingularName: "moon", Kind: "Moon", Verbs: metav1.Verbs{"get", "list"}}}
		},
		Serve: func(w http.ResponseWriter, r *aggregation.Request) error {
			l, _, err := r.Selectors()
			switch {
			case err != nil:
				return err
			case r.Name == "broken":
				return errors.New("the gauge is broken")
			case r.Name == "panics":
				panic("the gauge has burst")
			case r.Verb == "watch":
				_, err := w.Write([]byte(`{"type":"ADDED","object":{"kind":"Harbour"}}` + "\n"))
				return err
			case r.Verb == "list":
				list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "HarbourList", APIVersion: "tides.example.org/v1beta1"}, Items: []metav1.PartialObjectMetadata{}}
				for _, x := range []metav1.PartialObjectMetadata{harbour("default", "a"), harbour("other", "b")} {
					if (r.Namespace == "" || r.Namespace == x.Namespace) && l.Matches(labels.Set(x.Labels)) {
						list.Items = append(list.Items, x)
					}
				}
				return r.Send(w, &list, table(list.Items...))
			case r.Name != "a":
				return apierrors.NewNotFound(gr, r.Name)
			}
			x := harbour(r.Namespace, r.Name)
			if x.Annotations["asked"] = r.Subresource; r.Resource == "moons" {
				return r.Send(w, &x, nil)
			}
			return r.Send(w, &x, table(x))
		}}
}

const (
	tidesPath = "/apis/tides.example.org/v1beta1"
	harbours  = tidesPath + "/namespaces/default/harbours"
)

func startAggregating(t *testing.T, groups ...aggregation.Group) *cluster {
	return startWith(t, 0, talkers{}, func(c *apiserver.Config) { c.Local = groups })
}

// token makes a service account in a namespace, and a token of it.
func (c *cluster) token(namespace, name string) string {
	c.t.Helper()
	path := "/api/v1/namespaces/" + namespace + "/serviceaccounts"
	c.create(path, `{"metadata":{"name":"`+name+`"}}`)
	_, body := c.do(c.root(), "POST", path+"/"+name+"/token", `{"spec":{}}`)
	var made struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(body), &made); err != nil || made.Status.Token == "" {
		c.t.Fatal(body, err)
	}
	return made.Status.Token
}

// What is answered in process is reached through the same door as what is stored.
func TestGroupsAnsweredInProcess(t *testing.T) {
	c := startAggregating(t, tides())
	robot := []string{"Authorization", "Bearer " + c.token("default", "robot")}
	admin, node, nobody := c.user("admin", registry.GroupMasters), c.user("system:node:n1", registry.GroupNodes), c.user("")
	asSomebody := []string{"Impersonate-User", "somebody"}
	asRobot := []string{"Impersonate-User", "system:serviceaccount:default:robot"}
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io"
	for _, x := range []struct {
		name         string
		who          *http.Client
		method, path string
		headers      []string
		code         int
		says         string
	}{
		{"a list", admin, "GET", tidesPath + "/harbours", nil, 200, `"name":"b"`},
		{"of a namespace", admin, "GET", tidesPath + "/namespaces/other/harbours", nil, 200, `"items":[{"kind":"Harbour","apiVersion":"tides.example.org/v1beta1","metadata":{"name":"b"`},
		{"by label", admin, "GET", tidesPath + "/harbours?labelSelector=name%3Dc", nil, 200, `"items":[]`},
		{"by nonsense", admin, "GET", tidesPath + "/harbours?labelSelector=a%20in", nil, 400, "labelSelector"},
		{"one", admin, "GET", harbours + "/a", nil, 200, `"name":"a"`},
		{"by HEAD", admin, "HEAD", harbours + "/a", nil, 200, ""},
		{"its subresource", admin, "GET", harbours + "/a/level", nil, 200, `"asked":"level"`},
		{"a watch", admin, "GET", harbours + "?watch=1", nil, 200, `{"type":"ADDED"`},
		{"none of that name", admin, "GET", harbours + "/c", nil, 404, `harbours.tides.example.org \"c\" not found`},
		{"no such resource", admin, "GET", tidesPath + "/ports", nil, 404, "could not find the requested resource"},
		{"no such subresource", admin, "GET", harbours + "/a/depth", nil, 404, "could not find the requested resource"},
		{"in no namespace", admin, "GET", tidesPath + "/harbours/a", nil, 404, "could not find the requested resource"},
		{"of all namespaces, in one", admin, "GET", tidesPath + "/namespaces/default/moons", nil, 404, "could not find the requested resource"},
		{"too long a path", admin, "GET", harbours + "/a/level/b", nil, 404, "could not find the requested resource"},
		{"no such version", admin, "GET", "/apis/tides.example.org/v1/harbours", nil, 404, "could not find the requested resource"},
		{"a verb that it has not", admin, "POST", harbours, nil, 405, "does not allow this method"},
		{"no verb at all", admin, "BREW", harbours, nil, 405, "does not allow this method"},
		{"broken", admin, "GET", harbours + "/broken", nil, 500, "the gauge is broken"},
		{"a panic", admin, "GET", harbours + "/panics", nil, 500, "its log says how"},
		{"YAML", admin, "GET", harbours + "/a", []string{"Accept", "application/yaml"}, 200, "\n  name: a\n"},
		{"protobuf, or JSON", admin, "GET", harbours + "/a", []string{"Accept", "application/vnd.kubernetes.protobuf,application/json"}, 200, `"name":"a"`},
		{"protobuf", admin, "GET", harbours + "/a", []string{"Accept", "application/vnd.kubernetes.protobuf"}, 406, "NotAcceptable"},
		{"a Table", admin, "GET", harbours, []string{"Accept", table}, 200, `"cells":["a","2m"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"`},
		{"a Table with objects", admin, "GET", harbours + "?includeObject=Object", []string{"Accept", table}, 200, `"object":{"kind":"Harbour"`},
		{"a Table alone", admin, "GET", harbours + "?includeObject=None", []string{"Accept", table}, 200, `"cells":["a","2m"],"object":null`},
		{"a Table of what has no columns", admin, "GET", tidesPath + "/moons/a", []string{"Accept", table}, 406, "NotAcceptable"},
		{"a Table, or else itself", admin, "GET", tidesPath + "/moons/a", []string{"Accept", table + ",application/json"}, 200, `"kind":"Harbour"`},

		{"nobody", nobody, "GET", harbours, nil, 401, "Unauthorized"},
		{"a node", node, "GET", harbours, nil, 403, `cannot list resource \"harbours\" in API group \"tides.example.org\" in the namespace \"default\"`},
		{"a service account in its namespace", nobody, "GET", harbours + "/a", robot, 200, `"name":"a"`},
		{"and elsewhere", nobody, "GET", tidesPath + "/namespaces/other/harbours", robot, 403, "may only read its own namespace"},
		{"and everywhere", nobody, "GET", tidesPath + "/harbours", robot, 403, "may only read its own namespace"},
		{"and a subresource", nobody, "GET", harbours + "/a/level", robot, 403, "may only read its own namespace"},
		{"and what is in no namespace", nobody, "GET", tidesPath + "/moons", robot, 403, "may only read its own namespace"},
		{"an admin as somebody", admin, "GET", harbours, asSomebody, 403, `User \"somebody\" cannot list`},
		{"an admin as a service account", admin, "GET", harbours, asRobot, 200, `"name":"a"`},
		{"a node as somebody", node, "GET", harbours, asSomebody, 403, "cannot impersonate"},
	} {
		code, body := c.do(x.who, x.method, x.path, "", x.headers...)
		if code != x.code || !strings.Contains(body, x.says) {
			t.Errorf("%s: %d %s\nwant %d %s", x.name, code, body, x.code, x.says)
		}
		var st metav1.Status
		if err := json.Unmarshal([]byte(body), &st); code >= 400 && !strings.HasPrefix(body, "k8s\x00") && (err != nil || st.Kind != "Status" || int(st.Code) != code) {
			t.Errorf("%s: no Status: %s", x.name, body)
		}
	}
}

// Each form of discovery tells of the group, and access reviews know it.
func TestDiscoveryOfGroupsAnsweredInProcess(t *testing.T) {
	c := startAggregating(t, tides())
	nobody, robot := c.user(""), []string{"Authorization", "Bearer " + c.token("default", "robot")}
	for path, says := range map[string]string{
		"/apis":                   `{"name":"tides.example.org","versions":[{"groupVersion":"tides.example.org/v1beta1","version":"v1beta1"}]`,
		"/apis/tides.example.org": `"preferredVersion":{"groupVersion":"tides.example.org/v1beta1"`,
		tidesPath:                 `{"name":"harbours","singularName":"harbour","namespaced":true,"kind":"Harbour","verbs":["get","list","watch"],"shortNames":["hb"]}`,
		tidesPath + "/":           `"name":"harbours/level"`,
	} {
		if code, body := c.do(nobody, "GET", path, "", robot...); code != 200 || !strings.Contains(body, says) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, body := c.do(c.root(), "GET", "/apis/tides.example.org/v1", ""); code != 404 {
		t.Errorf("a version that there is not: %d %s", code, body)
	}
	_, body := c.do(c.root(), "GET", "/apis", "", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	var all apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatal(err, body)
	}
	i := slices.IndexFunc(all.Items, func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == "tides.example.org" })
	if i < 0 {
		t.Fatal(body)
	}
	v := all.Items[i].Versions[0]
	if len(v.Resources) != 2 || v.Freshness != apidiscoveryv2.DiscoveryFreshnessCurrent || v.Resources[0].Resource != "harbours" || v.Resources[0].Scope != apidiscoveryv2.ScopeNamespace ||
		v.Resources[0].ResponseKind.Kind != "Harbour" || v.Resources[0].Subresources[0].Subresource != "level" || v.Resources[1].Scope != apidiscoveryv2.ScopeCluster {
		t.Errorf("%+v", v)
	}
	review := `{"spec":{"user":"system:serviceaccount:default:robot","groups":["system:serviceaccounts","system:serviceaccounts:default","system:authenticated"],
		"resourceAttributes":{"verb":"list","group":"tides.example.org","resource":"harbours","namespace":`
	for namespace, want := range map[string]string{"default": `"allowed":true`, "other": `"allowed":false`} {
		if _, body := c.do(c.root(), "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review+`"`+namespace+`"}}}`); !strings.Contains(body, want) {
			t.Errorf("%s: %s", namespace, body)
		}
	}
}

// An open group is asked for what it does not name, by who may do that.
func TestOpenGroups(t *testing.T) {
	var asked []string
	c := startAggregating(t, aggregation.Group{Group: "gauges.example.org", Version: "v1", Open: true, Resources: func() []metav1.APIResource { return nil },
		Serve: func(w http.ResponseWriter, r *aggregation.Request) error {
			asked = []string{r.Verb, r.Namespace, r.Resource, r.Name, r.Subresource}
			return r.Send(w, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}}, nil)
		}})
	if code, body := c.do(c.root(), "GET", "/apis/gauges.example.org/v1/namespaces/default/pods/*/rain", ""); code != 200 || !slices.Equal(asked, []string{"get", "default", "pods", "*", "rain"}) {
		t.Errorf("%d %s %q", code, body, asked)
	}
	if code, body := c.do(c.user("somebody"), "GET", "/apis/gauges.example.org/v1/namespaces/default/pods/*/rain", ""); code != 403 || !strings.Contains(body, `\"pods/rain\"`) {
		t.Errorf("%d %s", code, body)
	}
	if code, body := c.do(c.root(), "GET", "/apis", "", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"); code != 200 || !strings.Contains(body, "gauges.example.org") {
		t.Errorf("%d %s", code, body)
	}
	if code, body := c.do(c.root(), "GET", "/apis/gauges.example.org/v1", ""); code != 200 || !strings.Contains(body, `"resources":[]`) {
		t.Errorf("%d %s", code, body)
	}
}
