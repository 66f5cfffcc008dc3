package strategy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry/decode"
)

func TestEveryKindHasAStrategy(t *testing.T) {
	table := All(Settings{})
	for kind := range table {
		if !slices.Contains(api.Builtin(), kind) {
			t.Errorf("%s has a strategy and is not in the table of kinds: it is not served", kind)
		}
	}
	for _, kind := range api.Kinds {
		s := table[kind]
		if s == nil {
			t.Errorf("%s has no strategy", kind)
			continue
		}
		if kind.HasStatus() && s.CopyStatus == nil {
			t.Errorf("%s has a status and no CopyStatus", kind)
		}
		// Subresources are declared in the table of kinds alone; a strategy only says what its own mean.
		for name, sub := range s.Subresources {
			if kind.Subresource(name) == nil {
				t.Errorf("%s: the subresource %s is not in the table of kinds", kind, name)
			}
			if sub.Part == nil && sub.Form == nil && sub.Action == nil {
				t.Errorf("%s/%s does nothing", kind, name)
			}
		}
		if (s.FormOf(api.ScaleSubresource) != nil) != (kind.Subresource(api.ScaleSubresource) != nil) {
			t.Errorf("%s: the table of kinds and the strategy differ about scale", kind)
		}
		for name, get := range s.Fields { // of the kind's own type
			get(kind.New())
			if name == "metadata.name" || name == "metadata.namespace" {
				t.Errorf("%s: %s is every kind's", kind, name)
			}
		}
	}
}

// Every question has its answer.
func TestEveryQuestionIsAnswered(t *testing.T) {
	for _, kind := range api.Questions {
		if s := All(Settings{})[kind]; s == nil || s.Answer == nil {
			t.Errorf("nothing answers a %s", kind.Kind)
		}
	}
}

func TestPodGrace(t *testing.T) {
	running := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", TerminationGracePeriodSeconds: new(int64(7))}}
	ended := running.DeepCopy()
	ended.Status.Phase = corev1.PodFailed
	unbound := running.DeepCopy()
	unbound.Spec.NodeName = ""
	for _, test := range []struct {
		pod   *corev1.Pod
		asked *int64
		want  int64
	}{
		{running, nil, 7},
		{running, new(int64(3)), 3},
		{running, new(int64(0)), 0},
		{running, new(int64(-1)), 1},
		{&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}, nil, 30},
		{ended, new(int64(3)), 0},
		{unbound, nil, 0},
	} {
		if got := podGrace(test.pod, test.asked); got != test.want {
			t.Errorf("%+v, asked %v: got %d, want %d", test.pod.Spec, test.asked, got, test.want)
		}
	}
}

// A binding sets the node and what the scheduler says beside it, and nothing else.
func TestTakeBinding(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	given := pod.DeepCopy()
	given.Spec.NodeName = "n"
	if errs := All(Settings{})[api.Pods].Subresources["binding"].Part(pod, given); len(errs) > 0 || pod.Spec.NodeName != "n" {
		t.Error(errs, pod.Spec.NodeName)
	}
}

func TestNamespaceLife(t *testing.T) {
	s := All(Settings{})[api.Namespaces]
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	s.PrepareCreate(ns)
	s.Default(ns)
	if ns.Status.Phase != corev1.NamespaceActive || s.Empty(ns) {
		t.Errorf("created: %+v", ns)
	}
	going := ns.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	going.Spec.Finalizers = nil // only finalize may do that
	s.PrepareUpdate(going, ns)
	s.Default(going)
	if going.Status.Phase != corev1.NamespaceTerminating || s.Empty(going) {
		t.Errorf("deleted: %+v", going)
	}
	last := going.DeepCopy()
	if errs := s.Subresources["finalize"].Part(last, &corev1.Namespace{}); len(errs) > 0 || !s.Empty(last) {
		t.Errorf("finalized: %+v, %v", last, errs)
	}
}

// TestSeedManifestsGoIn runs the manifests of both seeds through everything that a create does before it
// writes.
func TestSeedManifestsGoIn(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/dialects/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no manifests", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			manifest, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			kind := api.Pods
			switch {
			case strings.HasSuffix(file, "node.yaml"):
				kind = api.Nodes
			case strings.HasSuffix(file, "-dns.yaml") && !strings.Contains(file, "-service"):
				kind = api.DNSes
			case strings.Contains(file, "-gpujob"):
				kind = api.GpuJobs
			case strings.Contains(file, "-service"):
				kind = api.Services
			case strings.Contains(file, "-replicaset"):
				kind = api.ReplicaSets
			case strings.Contains(file, "x-hpa"):
				kind = api.HorizontalPodAutoscalersV1
			case strings.Contains(file, "a-hpa"):
				kind = api.HorizontalPodAutoscalersV2beta2
			}
			s := All(Settings{})[kind]
			obj, _, err := decode.Manifest(kind, s.Dialect, manifest, metav1.FieldValidationStrict)
			if err != nil {
				t.Fatal(err)
			}
			if kind.View != nil {
				obj, s = kind.View.Stored(obj), All(Settings{})[kind.Base()]
			}
			if kind.Namespaced {
				obj.SetNamespace(metav1.NamespaceDefault)
			}
			if s.PrepareCreate != nil {
				s.PrepareCreate(obj)
			}
			if s.Default != nil {
				s.Default(obj)
			}
			errs := validation.ObjectMeta(obj, kind.Namespaced)
			for _, validate := range []func(api.Object) field.ErrorList{s.Validate, s.ValidateCreate} {
				if validate != nil {
					errs = append(errs, validate(obj)...)
				}
			}
			for _, e := range errs {
				// What is only not served yet was understood.
				if !strings.Contains(e.Detail, "not served by this version") {
					t.Error(e)
				}
			}
		})
	}
}

// Who makes what calls functions for him must be allowed to call them; who changes something else of it need not.
func TestWhatCallsFunctionsNeedsTheRight(t *testing.T) {
	rows := All(Settings{})
	flow := func(definition string) *minik8s.Workflow {
		return &minik8s.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: "n"}, Spec: minik8s.WorkflowSpec{Definition: minik8s.JSON{Raw: []byte(definition)}}}
	}
	run, call := &minik8s.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: "n"}}, &minik8s.FunctionCall{ObjectMeta: metav1.ObjectMeta{Namespace: "n"}}
	for _, c := range []struct {
		what     string
		kind     *api.Kind
		obj, old api.Object
		needs    bool
	}{
		{"a workflow", api.Workflows, flow("1"), nil, true},
		{"another definition", api.Workflows, flow("2"), flow("1"), true},
		{"the same definition", api.Workflows, flow("1"), flow("1"), false},
		{"a run", api.WorkflowRuns, run, nil, true},
		{"a run that is cancelled", api.WorkflowRuns, run, run, false},
		{"a call", api.FunctionCalls, call, nil, true},
		{"a call whose labels change", api.FunctionCalls, call, call, false},
	} {
		needs := rows[c.kind].Needs(c.obj, c.old, nil)
		if (len(needs) == 1) != c.needs || c.needs && (needs[0].Verb != "create" || needs[0].Kind != api.Functions || needs[0].Sub != "call" || needs[0].Namespace != "n") {
			t.Errorf("%s: %+v", c.what, needs)
		}
	}
}
