package apiserver_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
)

// TestListsInEveryForm: a list that is sent in pieces is the same list in every form, also one of no items and one
// with items larger than a piece.
func TestListsInEveryForm(t *testing.T) {
	c := start(t)
	sys := local.New(c.reg, registry.System)
	texts := []string{"", "one line", "two\nlines\n", "\n\nblank\n\n\nlines", "tab\t: {[#&*!|>'\"%@`", "ünïcode ☃", " lead and trail \n ", strings.Repeat("long ", 40_000)}
	const n = 300
	for i := range n {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("m%03d", i)},
			Data: map[string]string{"text": texts[i%(len(texts)-1)], "more": strings.Repeat("x", i)}}
		if i == n/2 {
			cm.Data["text"] = texts[len(texts)-1]
		}
		if _, err := sys.Create(t.Context(), cm, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	root := c.root()
	for _, where := range []struct {
		path string
		n    int
	}{{cms, n}, {cms + "?labelSelector=no%3Dsuch", 0}} {
		_, plain := c.do(root, "GET", where.path, "")
		var want corev1.ConfigMapList
		if err := json.Unmarshal([]byte(plain), &want); err != nil || len(want.Items) != where.n || want.ResourceVersion == "" {
			t.Fatalf("%d items, %v: %.200s", len(want.Items), err, plain)
		}
		_, y := c.do(root, "GET", where.path, "", "Accept", "application/yaml")
		var asYAML corev1.ConfigMapList
		if err := yaml.UnmarshalStrict([]byte(y), &asYAML); err != nil || !equality.Semantic.DeepEqual(want, asYAML) {
			t.Errorf("YAML: %v: %.300s", err, y)
		}
		// Byte by byte what Kubernetes' own encoder makes of the list.
		s := protobuf.NewSerializer(api.Scheme, api.Scheme)
		_, pb := c.do(root, "GET", where.path, "", "Accept", "application/vnd.kubernetes.protobuf")
		for i := range want.Items {
			want.Items[i].TypeMeta = metav1.TypeMeta{}
		}
		var upstream bytes.Buffer
		if err := s.Encode(&want, &upstream); err != nil {
			t.Fatal(err)
		}
		if pb != upstream.String() {
			t.Errorf("protobuf: %d bytes, upstream's encoder makes %d", len(pb), upstream.Len())
		}
		_, tb := c.do(root, "GET", where.path, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		var table metav1.Table
		if err := json.Unmarshal([]byte(tb), &table); err != nil || len(table.Rows) != where.n || len(table.ColumnDefinitions) < 2 || table.ResourceVersion != want.ResourceVersion {
			t.Errorf("Table: %v: %.300s", err, tb)
		}
		for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
			_, pm := c.do(root, "GET", where.path, "", "Accept", accept+";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
			var partial metav1.PartialObjectMetadataList
			var err error
			if accept == "application/json" {
				err = json.Unmarshal([]byte(pm), &partial)
			} else {
				_, _, err = s.Decode([]byte(pm), nil, &partial)
			}
			if err != nil || len(partial.Items) != where.n || where.n > 0 && partial.Items[where.n-1].Name != want.Items[where.n-1].Name {
				t.Errorf("metadata as %s: %v: %d items of %d bytes", accept, err, len(partial.Items), len(pm))
			}
		}
	}
	// A kind that has no protobuf form is sent as JSON to who would take that too.
	if code, body := c.do(root, "POST", "/apis/minik8s.io/v1/clusterconfigs", `{"metadata":{"name":"cluster"}}`, "Accept", "application/vnd.kubernetes.protobuf,application/json"); code != 201 || body[0] != '{' {
		t.Errorf("%d %s", code, body)
	}
	if code, body := c.do(root, "GET", "/apis/minik8s.io/v1/clusterconfigs", "", "Accept", "application/vnd.kubernetes.protobuf,application/json"); code != 200 || !strings.Contains(body, "ClusterConfigList") {
		t.Errorf("%d %s", code, body)
	}
}

// TestAStalledReaderIsCutOff: a client that asks for a lot and takes nothing holds neither a list nor a watch for
// long; one that is only quiet keeps its watch.
func TestAStalledReaderIsCutOff(t *testing.T) {
	c := startPatient(t, 100*time.Millisecond)
	sys := local.New(c.reg, registry.System)
	write := func(name string) (revision string) {
		t.Helper()
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"a": strings.Repeat("x", 500_000)}}
		obj, err := sys.Create(t.Context(), cm, client.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return obj.GetResourceVersion()
	}
	var newest string
	for i := range 30 { // more than the buffers of a connection take
		newest = write(fmt.Sprintf("m%d", i))
	}
	ask := func(path string) *bufio.Reader {
		t.Helper()
		conn, err := net.Dial("unix", filepath.Join(c.dir, "api.sock"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() }) //nolint:errcheck // it is done with
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: minik8s\r\n\r\n", path)
		return bufio.NewReader(conn)
	}
	const watches, requests = "minik8s_api_watches", "minik8s_api_requests_inflight"
	until := func(metric, want string) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; {
			_, body := c.do(c.root(), "GET", "/metrics", "")
			if strings.Contains(body, "\n"+metric+" "+want+"\n") {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is never %s", metric, want)
			}
		}
	}
	quiet := ask(cms + "?watch=1&resourceVersion=" + newest)
	until(watches, "1")
	list := ask(cms)
	if line, err := list.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatal(line, err)
	}
	until(requests, "0")
	if line, err := ask(cms + "?watch=1").ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatal(line, err)
	}
	until(watches, "1")
	if n, _ := io.Copy(io.Discard, list); n > 14_000_000 { //nolint:errcheck // it breaks off
		t.Errorf("%d bytes of the list came", n)
	}
	write("last")
	for {
		line, err := quiet.ReadString('\n')
		if err != nil {
			t.Fatal("the quiet watch was cut off", err)
		}
		if strings.Contains(line, `"name":"last"`) {
			break
		}
	}
}

// TestEventsInTwoVersions: an Event made in either version is there in both, and can be listed, selected, watched, patched
// and deleted in both.
func TestEventsInTwoVersions(t *testing.T) {
	c := start(t)
	root := c.root()
	const core, new = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events"
	watch := c.watch(new + "?watch=1")
	if code, body := c.do(root, "POST", new, `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"a"},"eventTime":"2026-01-02T03:04:05.000006Z",
		"reportingController":"x.io/y","reportingInstance":"y-1","action":"Do","reason":"Done","type":"Normal","note":"hello","regarding":{"kind":"Pod","name":"p","namespace":"default"}}`); code != 201 || !strings.Contains(body, `"note":"hello"`) {
		t.Fatal(code, body)
	}
	if code, body := c.do(root, "POST", core, `{"metadata":{"name":"b"},"involvedObject":{"kind":"Pod","name":"q","namespace":"default"},"message":"world","reason":"Done","type":"Normal"}`); code != 201 {
		t.Fatal(code, body)
	}
	for _, x := range []struct{ path, says string }{
		{core + "/a", `"message":"hello"`}, {new + "/b", `"note":"world"`}, {new + "/b", `"regarding":{"kind":"Pod"`},
		{new, `{"kind":"EventList","apiVersion":"events.k8s.io/v1"`}, {new, `"note":"world"`},
		{new + "?fieldSelector=regarding.name%3Dp", `"note":"hello"`}, {core + "?fieldSelector=involvedObject.name%3Dp", `"message":"hello"`},
	} {
		if code, body := c.do(root, "GET", x.path, ""); code != 200 || !strings.Contains(body, x.says) {
			t.Errorf("%s: %d %s", x.path, code, body)
		}
	}
	if _, body := c.do(root, "GET", new+"?fieldSelector=regarding.name%3Dp", ""); strings.Contains(body, "world") {
		t.Errorf("the selector lets all through: %s", body)
	}
	if code, body := c.do(root, "PATCH", new+"/a", `{"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:06.000000Z"}}`, "Content-Type", "application/strategic-merge-patch+json"); code != 200 || !strings.Contains(body, `"count":2`) {
		t.Errorf("patch: %d %s", code, body)
	}
	_, body := c.do(root, "GET", new+"/a", "")
	if code, body := c.do(root, "PUT", new+"/a", strings.Replace(body, "hello", "again", 1)); code != 200 || !strings.Contains(body, `"note":"again"`) {
		t.Errorf("put: %d %s", code, body)
	}
	if code, body := c.do(root, "DELETE", new, ""); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	if _, body := c.do(root, "GET", core, ""); !strings.Contains(body, `"items":[]`) {
		t.Errorf("they are still there: %s", body)
	}
	for _, want := range []string{`"type":"ADDED","object":{"kind":"Event","apiVersion":"events.k8s.io/v1"`, `"note":"world"`, `"count":2`} {
		if !watch.Scan() || !strings.Contains(watch.Text(), want) {
			t.Errorf("the watch says %s, want %s", watch.Text(), want)
		}
	}
}

// TestEventsAreAppliedInBothVersions: fields that one manager has applied in one version are its own in the other too.
func TestEventsAreAppliedInBothVersions(t *testing.T) {
	c := start(t)
	root := c.root()
	const core, events = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events"
	newer := func(note string) string {
		return `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"a"},"eventTime":"2026-01-02T03:04:05.000006Z","reportingController":"x.io/y",
			"reportingInstance":"y-1","action":"Do","reason":"Done","type":"Normal","note":"` + note + `","regarding":{"kind":"Pod","name":"p","namespace":"default"}}`
	}
	apply := func(path, body string) (int, string) {
		return c.do(root, "PATCH", path, body, "Content-Type", "application/apply-patch+yaml")
	}
	if code, body := apply(events+"/a?fieldManager=one", newer("hello")); code != 201 || !strings.Contains(body, `"note":"hello"`) || !strings.Contains(body, `"apiVersion":"events.k8s.io/v1","time"`) {
		t.Fatalf("created: %d %s", code, body)
	}
	if code, body := apply(events+"/a?fieldManager=one", newer("again")); code != 200 || !strings.Contains(body, `"note":"again"`) {
		t.Errorf("applied again: %d %s", code, body)
	}
	older := `{"apiVersion":"v1","kind":"Event","metadata":{"name":"a"},"involvedObject":{"kind":"Pod","name":"p","namespace":"default"},"message":"mine","count":3}`
	if code, body := apply(core+"/a?fieldManager=two", older); code != 409 || !strings.Contains(body, `.note`) || !strings.Contains(body, "one") {
		t.Errorf("a conflict with a manager of the other version: %d %s", code, body)
	}
	if code, body := apply(core+"/a?fieldManager=two&force=true", older); code != 200 || !strings.Contains(body, `"message":"mine"`) {
		t.Errorf("by force: %d %s", code, body)
	}
	if code, body := apply(events+"/a?fieldManager=one", newer("back")); code != 409 || !strings.Contains(body, "two") {
		t.Errorf("a conflict the other way round: %d %s", code, body)
	}
	if code, body := c.do(root, "PATCH", core+"/a?fieldManager=three", `{"message":"changed"}`, "Content-Type", "application/merge-patch+json"); code != 200 || !strings.Contains(body, `"manager":"three"`) {
		t.Errorf("a patch notes its manager: %d %s", code, body)
	}
	if code, body := c.do(root, "GET", events+"/a", ""); code != 200 || !strings.Contains(body, `"note":"changed"`) || !strings.Contains(body, `"deprecatedCount":3`) {
		t.Errorf("%d %s", code, body)
	}
	if code, body := apply(events+"/a?fieldManager=one", `{"apiVersion":"v1","kind":"Event","metadata":{"name":"a"}}`); code != 400 {
		t.Errorf("of another version than the path: %d %s", code, body)
	}
	if code, body := apply(events+"/a?fieldManager=one&fieldValidation=Strict", `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"a"},"message":"x"}`); code != 400 || !strings.Contains(body, `unknown field \"message\"`) {
		t.Errorf("a field of the other version: %d %s", code, body)
	}
}

// TestAcceptOfUnknownTypes is refused, unless it takes anything or says nothing.
func TestAcceptOfUnknownTypes(t *testing.T) {
	c := start(t)
	root := c.root()
	for accept, want := range map[string]int{
		"text/html": 406, "application/xml, text/plain;q=0.5": 406, "application/json;as=Table;v=v2;g=meta.k8s.io": 406,
		"application/json;as=Nonsense;v=v1;g=meta.k8s.io": 406,
		"*/*": 200, "text/html, */*;q=0.8": 200, "": 200, "application/*": 200, "text/html,application/json": 200,
		"application/json;as=Table;v=v2;g=meta.k8s.io,application/json": 200, "application/yaml": 200, "application/vnd.kubernetes.protobuf": 200,
	} {
		for _, path := range []string{cms, "/api/v1/namespaces/default"} {
			code, body := c.do(root, "GET", path, "", "Accept", accept)
			if code != want || want == 406 && (!strings.Contains(body, `"NotAcceptable"`) || !strings.Contains(body, "application/json")) {
				t.Errorf("%s as %q: %d %s, want %d", path, accept, code, body, want)
			}
		}
	}
	for path, want := range map[string]int{"/version": 200, "/healthz": 200, "/metrics": 200, "/openapi/v2": 200, "/api": 406, "/apis": 406, "/apis/apps": 406, "/api/v1": 406,
		// What a container answers is between it and the client.
		"/api/v1/namespaces/default/pods/none/log": 404, "/api/v1/namespaces/default/pods/none/proxy/": 404} {
		if code, body := c.do(root, "GET", path, "", "Accept", "text/html"); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, body := c.do(root, "POST", cms, `{"metadata":{"name":"unwritten"}}`, "Accept", "text/html"); code != 406 {
		t.Errorf("a create: %d %s", code, body)
	}
	if code, _ := c.do(root, "GET", cms+"/unwritten", ""); code != 404 {
		t.Errorf("what was refused has been written: %d", code)
	}
	if code, body := c.do(root, "GET", cms+"?watch=1&timeoutSeconds=1", "", "Accept", "text/html"); code != 406 {
		t.Errorf("a watch: %d %s", code, body)
	}
}

// TestPathsAreUnescapedOnce: a percent sign in a name is itself.
func TestPathsAreUnescapedOnce(t *testing.T) {
	c := start(t)
	root := c.root()
	if code, body := c.do(root, "POST", cms, `{"metadata":{"name":"ab"}}`); code != 201 {
		t.Fatal(code, body)
	}
	for path, want := range map[string]struct {
		code int
		says string
	}{
		cms + "/ab":     {200, `"name":"ab"`},
		cms + "/a%62":   {200, `"name":"ab"`},
		cms + "/a%2562": {404, `"a%62\" not found`},
		"/api/v1/namespaces/def%2561ult/configmaps/ab": {404, "not found"},
		"/api/v1/namespaces/default/configmaps/a%2Fb":  {404, `"a/b\" not found`},
	} {
		if code, body := c.do(root, "GET", path, ""); code != want.code || !strings.Contains(body, want.says) {
			t.Errorf("%s: %d %s, want %+v", path, code, body, want)
		}
	}
}

// TestQuietStreamsLast: a watch and a followed log on which nothing happens for longer than an answer may take go on,
// over HTTP/2 too.
func TestQuietStreamsLast(t *testing.T) {
	const patience = 50 * time.Millisecond
	c := startPatient(t, patience)
	sys := local.New(c.reg, registry.System)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "i"}, {Name: late, Image: "i"}}}}
	if _, err := sys.Create(t.Context(), pod, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	admin := c.user("admin", registry.GroupMasters)
	admin.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	open := func(path string) *bufio.Reader {
		t.Helper()
		resp, err := admin.Get("https://" + c.address + path)
		if err != nil || resp.ProtoMajor != 2 || resp.StatusCode != 200 {
			t.Fatalf("%v %+v", err, resp)
		}
		t.Cleanup(func() { resp.Body.Close() }) //nolint:errcheck // it was only read
		return bufio.NewReader(resp.Body)
	}
	watch, log := open(cms+"?watch=1"), open("/api/v1/namespaces/default/pods/p/log?follow=1&container="+late)
	<-time.After(8 * patience) // longer than any answer may take
	if _, err := sys.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if line, err := watch.ReadString('\n'); err != nil || !strings.Contains(line, "ADDED") {
		t.Errorf("the watch: %q %v", line, err)
	}
	if line, err := log.ReadString('\n'); err != nil || !strings.Contains(line, "hello") {
		t.Errorf("the log: %q %v", line, err)
	}
}

// A form of a kind may have columns of its own.
func TestTableOfPeers(t *testing.T) {
	c := start(t)
	root := c.root()
	if code, answer := c.do(root, "POST", "/api/v1/nodes", `{"metadata":{"name":"n"},"spec":{"podCIDR":"10.9.8.0/24"}}`); code != 201 {
		t.Fatal(code, answer)
	}
	code, answer := c.do(root, "GET", "/apis/minik8s.io/v1/peers", "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	if code != 200 || !strings.Contains(answer, `"10.9.8.0/24"`) || !strings.Contains(answer, `"name":"Pods"`) {
		t.Errorf("%d %s", code, answer)
	}
	for _, below := range []string{"status", "proxy"} {
		if code, answer := c.do(root, "GET", "/apis/minik8s.io/v1/peers/n/"+below, ""); code != 404 {
			t.Errorf("%s: %d %s", below, code, answer)
		}
	}
	if code, answer := c.do(root, "PUT", "/apis/minik8s.io/v1/peers/n/status?fieldValidation=Strict", `{"odd":1}`); code != 404 {
		t.Errorf("a write of the status: %d %s", code, answer)
	}
	if code, answer := c.do(root, "DELETE", "/apis/minik8s.io/v1/peers/n", ""); code != 405 {
		t.Errorf("a deletion: %d %s", code, answer)
	}
	// Nodes read Peers, and of the Nodes only their own.
	for _, who := range []struct {
		name, group string
		code        int
	}{
		{"system:node:n", registry.GroupNodes, 200},
		{"system:serviceaccount:default:default", "system:serviceaccounts", 403},
		{"somebody", "somewhere", 403},
	} {
		user := c.user(who.name, who.group)
		for _, path := range []string{"/apis/minik8s.io/v1/peers", "/apis/minik8s.io/v1/peers/n", "/api/v1/nodes/n", "/api/v1/nodes?fieldSelector=metadata.name%3Dn"} {
			if code, answer := c.do(user, "GET", path, ""); code != who.code {
				t.Errorf("%s: %s: %d %s", who.name, path, code, answer)
			}
		}
		for _, path := range []string{"/api/v1/nodes", "/api/v1/nodes/m", "/api/v1/nodes?fieldSelector=metadata.name%21%3Dm"} {
			if code, answer := c.do(user, "GET", path, ""); code != 403 {
				t.Errorf("%s: %s: %d %s", who.name, path, code, answer)
			}
		}
	}
}

// Nodes read the addresses of all pods and the labels of all namespaces, and of the Pods only their own.
func TestWhoReadsPodAddresses(t *testing.T) {
	c := start(t)
	root := c.root()
	pod := `{"metadata":{"name":"p","labels":{"app":"web"}},"spec":{"nodeName":"m","containers":[{"name":"c","image":"i","ports":[{"name":"http","containerPort":80}]}]}}`
	if code, answer := c.do(root, "POST", "/api/v1/namespaces/default/pods", pod); code != 201 {
		t.Fatal(code, answer)
	}
	if code, answer := c.do(root, "PATCH", "/api/v1/namespaces/default/pods/p/status", `{"status":{"podIP":"10.9.8.7","podIPs":[{"ip":"10.9.8.7"}]}}`, "Content-Type", "application/merge-patch+json"); code != 200 {
		t.Fatal(code, answer)
	}
	const all, own = "/apis/minik8s.io/v1/podaddresses", "/apis/minik8s.io/v1/namespaces/default/podaddresses"
	code, answer := c.do(root, "GET", all, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	if code != 200 || !strings.Contains(answer, `"10.9.8.7"`) || !strings.Contains(answer, `"http:80/TCP"`) {
		t.Errorf("%d %s", code, answer)
	}
	for _, who := range []struct {
		name, group           string
		all, namespaces, pods int
	}{
		{"system:node:n", registry.GroupNodes, 200, 200, 403},
		{"system:serviceaccount:other:default", "system:serviceaccounts", 403, 403, 403},
		{"somebody", "somewhere", 403, 403, 403},
	} {
		user := c.user(who.name, who.group)
		for path, want := range map[string]int{all: who.all, own: who.all, own + "/p": who.all, "/api/v1/namespaces": who.namespaces,
			"/api/v1/namespaces/default": who.namespaces, "/api/v1/pods": who.pods, "/api/v1/namespaces/default/pods/p": who.pods} {
			if code, answer := c.do(user, "GET", path, ""); code != want {
				t.Errorf("%s: %s: %d, want %d: %s", who.name, path, code, want, answer)
			}
		}
		for _, r := range [][2]string{{"DELETE", own + "/p"}, {"PUT", own + "/p"}, {"DELETE", "/api/v1/namespaces/default"}, {"PUT", "/api/v1/namespaces/default"}} {
			if code, answer := c.do(user, r[0], r[1], `{"metadata":{"name":"p"}}`); code != 403 && code != 405 {
				t.Errorf("%s: %s %s: %d %s", who.name, r[0], r[1], code, answer)
			}
		}
	}
}

// A row of a Table is made of the stored object, also where the client sees a view of it that has no columns of its own.
func TestTableOfAView(t *testing.T) {
	c := start(t)
	root := c.root()
	const events, table = "/apis/events.k8s.io/v1/namespaces/default/events", "application/json;as=Table;v=v1;g=meta.k8s.io"
	if code, answer := c.do(root, "POST", "/api/v1/namespaces/default/events", `{"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","namespace":"default","name":"p"},"reason":"Made","message":"it was made","type":"Normal"}`); code != 201 {
		t.Fatal(code, answer)
	}
	for _, path := range []string{events, events + "/e"} {
		code, answer := c.do(root, "GET", path+"?includeObject=Object", "", "Accept", table)
		if code != 200 || !strings.Contains(answer, `"it was made"`) || !strings.Contains(answer, `"regarding":`) {
			t.Errorf("%s: %d %s", path, code, answer)
		}
	}
	w := c.watch(events+"?watch=1&includeObject=Object", "Accept", table)
	if !w.Scan() || !strings.Contains(w.Text(), `"it was made"`) || !strings.Contains(w.Text(), `"regarding":`) {
		t.Errorf("watch: %s", w.Text())
	}
}
