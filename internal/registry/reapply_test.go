package registry_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
	"minik8s/internal/registry"
	"minik8s/internal/registry/decode"
	"minik8s/internal/registry/registrytest"
)

// applier does what kubectl apply does: it creates an object, and from then on sends what the manifest says
// otherwise than the object, as a strategic merge patch.
type applier struct {
	t    *testing.T
	reg  *registry.Registry
	kind *api.Kind
	last []byte // the manifest before
}

func (a *applier) apply(manifest string) (api.Object, error) {
	a.t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		a.t.Fatal(err)
	}
	last := a.last
	a.last = raw
	obj, _, err := decode.Manifest(a.kind, a.reg.Strategy(a.kind).Dialect, raw, metav1.FieldValidationIgnore)
	if err != nil {
		return nil, err
	}
	namespace := ""
	if a.kind.Namespaced {
		namespace = metav1.NamespaceDefault
	}
	if last == nil {
		e, err := a.reg.Create(a.t.Context(), registrytest.Ask("create", a.kind, namespace, "", ""), obj, registry.WriteOptions{})
		if err != nil {
			return nil, err
		}
		return e.Object(), nil
	}
	get := registrytest.Ask("get", a.kind, namespace, obj.GetName(), "")
	old, err := a.reg.Get(a.t.Context(), get)
	if err != nil {
		a.t.Fatal(err)
	}
	current, err := json.Marshal(get.Shown(old))
	if err != nil {
		a.t.Fatal(err)
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(a.kind.New())
	if err != nil {
		a.t.Fatal(err)
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(last, raw, current, meta, true)
	if err != nil {
		a.t.Skipf("kubectl makes no patch of it: %v", err)
	}
	a.t.Logf("%s", patch)
	e, _, err := a.reg.Patch(a.t.Context(), registrytest.Ask("patch", a.kind, namespace, obj.GetName(), ""),
		registry.Patch{Type: types.StrategicMergePatchType, Data: patch, Validation: metav1.FieldValidationIgnore}, registry.WriteOptions{})
	if err != nil {
		return nil, err
	}
	return e.Object(), nil
}

// Every manifest of the seeds can be applied twice, and the second time changes nothing. But for the one whose port
// is a string: to a strategic merge, which goes by the port, that is another one. kubectl does not take that
// manifest, which has no apiVersion, and minik8sd ctl sends its canonical form.
func TestSeedManifestsAreAppliedAgain(t *testing.T) {
	files, err := filepath.Glob("../../testdata/dialects/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no manifests", err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "x-pod-other-fields.yaml") })
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			manifest, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			a := &applier{t: t, reg: registrytest.New(t), kind: api.Pods}
			switch {
			case strings.HasSuffix(file, "node.yaml"):
				a.kind = api.Nodes
			case strings.HasSuffix(file, "-dns.yaml") && !strings.Contains(file, "-service"):
				a.kind = api.DNSes
			case strings.Contains(file, "-gpujob"):
				a.kind = api.GpuJobs
			case strings.Contains(file, "-service"):
				a.kind = api.Services
			case strings.Contains(file, "-replicaset"):
				a.kind = api.ReplicaSets
			case strings.Contains(file, "x-hpa"):
				a.kind = api.HorizontalPodAutoscalersV1
			case strings.Contains(file, "a-hpa"):
				a.kind = api.HorizontalPodAutoscalersV2beta2
			}
			once, err := a.apply(string(manifest))
			if err != nil {
				t.Fatal(err)
			}
			twice, err := a.apply(string(manifest))
			if err != nil {
				t.Fatal(err)
			}
			once, twice = once.DeepCopyObject().(api.Object), twice.DeepCopyObject().(api.Object)
			once.SetResourceVersion("")
			twice.SetResourceVersion("")
			if !equality.Semantic.DeepEqual(once, twice) {
				t.Errorf("once  %+v\ntwice %+v", once, twice)
			}
		})
	}
}

// A ReplicaSet without a selector keeps the label that its pods were given, however the manifest says that they
// have none.
func TestSelectorlessReplicaSetIsAppliedAgain(t *testing.T) {
	for _, metadata := range []string{"", "metadata:", "metadata: {}", "metadata: {labels: }", "metadata: {labels: {}}"} {
		t.Run(metadata, func(t *testing.T) {
			a := &applier{t: t, reg: registrytest.New(t), kind: api.ReplicaSets}
			manifest := "kind: ReplicaSet\nmetadata: {name: bare}\nspec:\n  template:\n    " + metadata + `
    spec:
      containers: [{name: c, image: one}]`
			if _, err := a.apply(manifest); err != nil {
				t.Fatal(err)
			}
			obj, err := a.apply(strings.Replace(manifest, "one", "two", 1))
			if err != nil {
				t.Fatal(err)
			}
			s := obj.(*appsv1.ReplicaSet).Spec
			if s.Template.Labels["minik8s.io/replicaset"] != "bare" || s.Selector.MatchLabels["minik8s.io/replicaset"] != "bare" ||
				s.Template.Spec.Containers[0].Image != "two" {
				t.Errorf("%+v", s)
			}
		})
	}
}
