package node

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	authuser "k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/endpoints/filters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/admission/noderestriction"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// file has what upstream says, for the test of package apiserver: that is built with a newer k8s.io/api than the newest
// k8s.io/kubernetes that the module proxy serves, so the two cannot be in one program.
const file = "../../../internal/registry/authorization/testdata/nodes.json"

var update = flag.Bool("update", false, "write the file anew")

// judge is an API server as far as it decides about nodes.
type judge struct {
	t          *testing.T
	resolver   *apirequest.RequestInfoFactory
	authorizer authorizer.Authorizer
	plugin     *noderestriction.Plugin
	there      map[string][]byte // what the requests may change, by resource, namespace and name
}

func newJudge(t *testing.T, c cluster) *judge {
	graph, identifier := node.NewGraph(), nodeidentifier.NewDefaultNodeIdentifier()
	roles := bootstrappolicy.ClusterRoles()
	bindings := bootstrappolicy.ClusterRoleBindings()
	_, static := validation.NewTestRuleResolver(nil, nil, pointers(roles), pointers(bindings))
	chain, err := union.New(union.NamedAuthorizer{AuthorizerName: "node", Authorizer: node.NewAuthorizer(graph, identifier, bootstrappolicy.NodeRules())},
		union.NamedAuthorizer{AuthorizerName: "rbac", Authorizer: rbac.New(static, static, static, static)})
	if err != nil {
		t.Fatal(err)
	}
	j := &judge{t: t, there: map[string][]byte{},
		resolver:   &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")},
		authorizer: chain,
		plugin:     noderestriction.NewPlugin(identifier)}
	informers := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	j.plugin.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	j.plugin.SetExternalKubeInformerFactory(informers)
	j.plugin.SetUnconditionalAuthorizer(j.authorizer)
	if err := j.plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	keep := func(key string, obj any) {
		raw, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		j.there[key] = raw
	}
	for _, n := range c.Nodes {
		keep("nodes//"+n.Name, n)
		if err := informers.Core().V1().Nodes().Informer().GetIndexer().Add(n); err != nil {
			t.Fatal(err)
		}
		keep("leases/kube-node-lease/"+n.Name, leases.body(n.Name))
	}
	for _, p := range c.Pods {
		keep("pods/"+p.Namespace+"/"+p.Name, p)
		if err := informers.Core().V1().Pods().Informer().GetIndexer().Add(p); err != nil {
			t.Fatal(err)
		}
		if p.Spec.NodeName != "" { // as the graph's populator
			graph.AddPod(p)
		}
	}
	return j
}

func pointers[T any](all []T) []*T {
	out := make([]*T, len(all))
	for i := range all {
		out[i] = &all[i]
	}
	return out
}

// restricted are the resources about whose objects NodeRestriction has something to say.
var restricted = sets.New("pods", "nodes", "serviceaccounts", "leases", "certificatesigningrequests")

// verdict says whether a request is allowed, as far as it depends on who asks.
func (j *judge) verdict(r request) string {
	req := httptest.NewRequest(r.Method, "http://x"+r.Path, nil)
	info, err := j.resolver.NewRequestInfo(req)
	if err != nil {
		j.t.Fatal(err)
	}
	who := users[r.User]
	ctx := apirequest.WithRequestInfo(apirequest.WithUser(context.Background(),
		&authuser.DefaultInfo{Name: who.Name, Groups: append([]string{"system:authenticated"}, who.Groups...)}), info)
	attrs, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		j.t.Fatal(err)
	}
	if d, _, _ := j.authorizer.Authorize(ctx, attrs); d != authorizer.DecisionAllow {
		return refused
	}
	if r.Method == http.MethodGet || !restricted.Has(info.Resource) {
		return allowed
	}
	old := j.there[info.Resource+"/"+info.Namespace+"/"+info.Name]
	op, sent := admission.Create, marshal(j.t, r.Body)
	switch {
	case r.Method == http.MethodDelete && old == nil && info.Name != "", r.Method == http.MethodPatch && old == nil && !r.Apply,
		r.Method == http.MethodPut && old == nil && info.Resource != "leases":
		return absent
	case r.Method == http.MethodDelete:
		op, sent = admission.Delete, nil
	case r.Method == http.MethodPut && old != nil:
		op = admission.Update
	case r.Method == http.MethodPatch && old != nil:
		op = admission.Update
		if sent, err = jsonpatch.MergePatch(old, sent); err != nil {
			j.t.Fatal(err)
		}
	case r.Method == http.MethodPatch: // the API server asks once more, for the other verb
		create := *info
		create.Verb = "create"
		attrs, err := filters.GetAuthorizerAttributes(apirequest.WithRequestInfo(ctx, &create))
		if err != nil {
			j.t.Fatal(err)
		}
		if d, _, _ := j.authorizer.Authorize(ctx, attrs); d != authorizer.DecisionAllow {
			return refused
		}
	}
	name := info.Name
	if name == "" {
		name, _ = r.Body["metadata"].(map[string]any)["name"].(string)
	}
	record := admission.NewAttributesRecord(j.decode(sent), j.decode(old), schema.GroupVersionKind{}, info.Namespace, name,
		schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}, info.Subresource, op, nil, false, attrs.GetUser())
	if j.plugin.Handles(op) && j.plugin.Admit(ctx, record, nil) != nil {
		return refused
	}
	return allowed
}

// decode gives an object in the form in which admission sees it.
func (j *judge) decode(raw []byte) runtime.Object {
	if raw == nil {
		return nil
	}
	obj, err := runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), raw)
	if err != nil {
		j.t.Fatalf("%s: %v", raw, err)
	}
	return obj
}

func marshal(t *testing.T, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// The file is what upstream says.
func TestVerdicts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := makeCluster(rng)
	j := newJudge(t, c)
	all := requests(rng, c)
	count := map[string]int{}
	var want bytes.Buffer
	want.WriteString(`{"users":` + string(marshal(t, users)) + ",\n\"cluster\":" + string(marshal(t, c)) + ",\n\"requests\":[\n")
	for i := range all {
		all[i].Verdict = j.verdict(all[i])
		count[all[i].Verdict]++
		want.Write(marshal(t, all[i]))
		if i < len(all)-1 {
			want.WriteByte(',')
		}
		want.WriteByte('\n')
	}
	want.WriteString("]}\n")
	t.Log(count)
	if *update {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(have, want.Bytes()) {
		t.Errorf("%s is not what upstream says: run go test ./node -update in testdata/oracle (%v)", file, err)
	}
}
