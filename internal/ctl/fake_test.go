package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"minik8s/internal/api"
	"minik8s/internal/api/dialect"
	"minik8s/internal/apiserver/discovery"
	"minik8s/internal/client/remote"
	"minik8s/internal/ctl/session"
)

// fakeAPI is the part of an API server that the commands need: objects in a map, and rows of names.
type fakeAPI struct {
	t       *testing.T
	mu      sync.Mutex
	rev     int
	objects map[string]api.Object // by path
	logs    map[string]string     // by path and query
	routes  map[string]http.HandlerFunc
	offline Offline
	calls   []string
	clock   func() time.Time // the commands' clock; nil: it stands at testTime
	// discovery is the server's own, of the kinds that are compiled in.
	discovery *echo.Echo
}

var testTime = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func newFake(t *testing.T, objects ...api.Object) *fakeAPI {
	f := &fakeAPI{t: t, objects: map[string]api.Object{}, logs: map[string]string{}, routes: map[string]http.HandlerFunc{}}
	for _, obj := range objects {
		f.put(pathOf(obj), obj)
	}
	kinds := discovery.Handler{Kinds: api.NewTable(api.Builtin()...)}
	f.discovery = echo.New()
	f.discovery.GET("/api", kinds.CoreVersions)
	f.discovery.GET("/apis", kinds.Groups)
	return f
}

func pathOf(obj api.Object) string {
	k := api.KindOf(obj)
	path := "/api/" + k.Version
	if k.Group != "" {
		path = "/apis/" + k.Group + "/" + k.Version
	}
	if k.Namespaced {
		path += "/namespaces/" + obj.GetNamespace()
	}
	return path + "/" + k.Plural + "/" + obj.GetName()
}

func (f *fakeAPI) put(path string, obj api.Object) {
	f.rev++
	obj.SetResourceVersion(fmt.Sprint(f.rev))
	if obj.GetUID() == "" {
		obj.SetUID(types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", f.rev)))
	}
	if obj.GetCreationTimestamp().Time.IsZero() {
		obj.SetCreationTimestamp(metav1.NewTime(testTime.Add(-2 * time.Minute)))
	}
	obj.GetObjectKind().SetGroupVersionKind(api.KindOf(obj).GVK())
	f.objects[path] = obj
}

func (f *fakeAPI) get(path string) api.Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.objects[path]
}

// parse splits a path into the kind, the namespace, the name and what is below it.
func parse(path string) (k *api.Kind, ns, name, sub string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group, version, rest := "", "", []string(nil)
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		version, rest = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		group, version, rest = parts[1], parts[2], parts[3:]
	default:
		return nil, "", "", ""
	}
	if rest[0] == "namespaces" && len(rest) > 2 {
		ns, rest = rest[1], rest[2:]
	}
	k = api.NewTable(api.Builtin()...).ByResource(schema.GroupVersionResource{Group: group, Version: version, Resource: rest[0]})
	if len(rest) > 1 {
		name = rest[1]
	}
	if len(rest) > 2 {
		sub = rest[2]
	}
	return k, ns, name, sub
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, r.Method+" "+r.URL.RequestURI())
	if h := f.routes[r.Method+" "+r.URL.Path]; h != nil {
		h(w, r)
		return
	}
	if r.URL.Path == "/api" || r.URL.Path == "/apis" {
		f.discovery.ServeHTTP(w, r)
		return
	}
	k, ns, name, sub := parse(r.URL.Path)
	if k == nil {
		fail(w, apierrors.NewNotFound(api.Pods.GR(), r.URL.Path))
		return
	}
	body, _ := io.ReadAll(r.Body)
	obj := f.objects[r.URL.Path]
	switch {
	case sub == "log":
		text, ok := f.logs[name+"?"+r.URL.Query().Encode()]
		if !ok {
			fail(w, apierrors.NewBadRequest("no log for "+name+"?"+r.URL.Query().Encode()))
			return
		}
		io.WriteString(w, text)
	case r.Method == http.MethodPost:
		f.create(w, r, k, ns, body)
	case r.Method == http.MethodGet && name == "":
		f.list(w, r, k, ns)
	case obj == nil:
		fail(w, apierrors.NewNotFound(k.GR(), name))
	case r.Method == http.MethodGet:
		f.answer(w, r, k, []api.Object{obj}, true)
	case r.Method == http.MethodDelete:
		delete(f.objects, r.URL.Path)
		reply(w, http.StatusOK, obj)
	case r.Method == http.MethodPatch:
		f.patch(w, r, k, obj, body)
	default:
		fail(w, apierrors.NewMethodNotSupported(k.GR(), r.Method))
	}
}

func (f *fakeAPI) create(w http.ResponseWriter, r *http.Request, k *api.Kind, ns string, body []byte) {
	obj := k.New()
	if form := dialect.For(k); form != nil { // as the server
		var doc map[string]any
		_ = json.Unmarshal(body, &doc) // decoding says what is wrong
		_, _ = form(doc)
		body, _ = json.Marshal(doc)
	}
	if err := json.Unmarshal(body, obj); err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	if k.Namespaced {
		obj.SetNamespace(ns)
	}
	path := pathOf(obj)
	if f.objects[path] != nil {
		fail(w, apierrors.NewAlreadyExists(k.GR(), obj.GetName()))
		return
	}
	if r.URL.Query().Get("dryRun") == "" {
		f.put(path, obj)
	}
	reply(w, http.StatusCreated, obj)
}

func (f *fakeAPI) patch(w http.ResponseWriter, r *http.Request, k *api.Kind, obj api.Object, body []byte) {
	old, _ := json.Marshal(obj)
	// For the maps that are patched here, both forms of patches do the same.
	data, err := strategicpatch.StrategicMergePatch(old, body, k.New())
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	out := k.New()
	if err := json.Unmarshal(data, out); err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	if now, _ := json.Marshal(out); !bytes.Equal(now, old) && r.URL.Query().Get("dryRun") == "" {
		f.put(r.URL.Path, out)
	}
	reply(w, http.StatusOK, out)
}

func (f *fakeAPI) list(w http.ResponseWriter, r *http.Request, k *api.Kind, ns string) {
	var paths []string
	for path, obj := range f.objects {
		if api.KindOf(obj) == k && (ns == "" || obj.GetNamespace() == ns) {
			paths = append(paths, path)
		}
	}
	sort.Strings(paths)
	var items []api.Object
	for _, path := range paths {
		items = append(items, f.objects[path])
	}
	f.answer(w, r, k, items, false)
}

func (f *fakeAPI) answer(w http.ResponseWriter, r *http.Request, k *api.Kind, items []api.Object, single bool) {
	if strings.Contains(r.Header.Get("Accept"), "as=Table") {
		table := metav1.Table{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"},
			ColumnDefinitions: []metav1.TableColumnDefinition{
				{Name: "Name", Type: "string", Format: "name"}, {Name: "Status", Type: "string"},
				{Name: "Restarts", Type: "integer"}, {Name: "UID", Type: "string", Priority: 1},
			},
			Rows: []metav1.TableRow{},
		}
		for _, obj := range items {
			meta, _ := json.Marshal(metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: obj.GetName(), Namespace: obj.GetNamespace()}})
			table.Rows = append(table.Rows, metav1.TableRow{
				Cells: []any{obj.GetName(), "Running", 3, string(obj.GetUID())}, Object: runtime.RawExtension{Raw: meta},
			})
		}
		reply(w, http.StatusOK, table)
		return
	}
	if single {
		reply(w, http.StatusOK, items[0])
		return
	}
	if items == nil {
		items = []api.Object{}
	}
	reply(w, http.StatusOK, map[string]any{"apiVersion": k.APIVersion(), "kind": k.Kind + "List", "items": items})
}

func reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(v)
}

func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	reply(w, int(status.Code), status)
}

// ran is the result of a command.
type ran struct {
	out, err string
	code     int
	text     string // of the error
}

// ctl runs a command against the fake.
func (f *fakeAPI) ctl(stdin string, args ...string) ran {
	f.t.Helper()
	srv := httptest.NewServer(f)
	defer srv.Close()
	var out, errOut bytes.Buffer
	p := newProgram(strings.NewReader(stdin), &out, &errOut)
	p.getenv = func(string) string { return "" }
	p.now = func() time.Time { return testTime }
	if f.clock != nil {
		p.now = f.clock
	}
	p.pause, p.offline = time.Millisecond, f.offline
	p.connect = func(session.Where) (session.Server, error) { return remote.New(remote.Config{Server: srv.URL}) }
	err := p.run(context.Background(), args)
	result := ran{out: out.String(), err: errOut.String()}
	if err != nil {
		result.text = err.Error()
		result.code = 1
		if coder, ok := err.(interface{ ExitCode() int }); ok {
			result.code = coder.ExitCode()
		}
	}
	return result
}

// golden compares with a file in testdata; UPDATE_GOLDEN=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}
