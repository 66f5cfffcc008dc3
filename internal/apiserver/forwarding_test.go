package apiserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"minik8s/internal/registry"
)

const boats = "/apis/boats.example.org/v1/namespaces/default/boats"

// A Service that serves a group is told whom each request is from, and nobody can pretend to be another.
func TestGroupsOfServices(t *testing.T) {
	x := startExtended(t)
	e := x.extend("boats", "boats.example.org", "", says("boats for"))
	x.until("v1.boats.example.org", "True")
	admin, node, nobody := x.user("admin", registry.GroupMasters), x.user("system:node:n1", registry.GroupNodes), x.user("")
	robot := "Bearer " + x.token("default", "robot")
	spoofed := []string{"X-Remote-User", "root", "X-Remote-Group", "system:masters", "X-Remote-Extra-Scopes", "all", "X-Remote-Uid", "7",
		"X_Remote_User", "root", "Authorization", robot}
	for _, q := range []struct {
		name         string
		who          *http.Client
		method, path string
		headers      []string
		code         int
		says         string
		user         string
		groups       []string // sorted
	}{
		{"an admin", admin, "GET", boats, nil, 200, "boats for " + boats, "admin", []string{"system:authenticated", "system:masters"}},
		{"with a query and escapes", admin, "GET", boats + "/a%3Ab?limit=1&x=%20", nil, 200, boats + "/a%3Ab?limit=1&x=%20", "admin", []string{"system:authenticated", "system:masters"}},
		{"a write", admin, "POST", boats, nil, 200, "boats for", "admin", []string{"system:authenticated", "system:masters"}},
		{"a service account", nobody, "GET", boats, []string{"Authorization", robot}, 200, "boats for", "system:serviceaccount:default:robot",
			[]string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:default"}},
		{"who pretends", nobody, "GET", boats, spoofed, 200, "boats for", "system:serviceaccount:default:robot",
			[]string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:default"}},
		{"an admin as another", admin, "GET", boats, []string{"Impersonate-User", "system:serviceaccount:default:robot"}, 200, "boats for", "system:serviceaccount:default:robot",
			[]string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:default"}},
		{"a service account elsewhere", nobody, "GET", strings.Replace(boats, "default", "other", 1), []string{"Authorization", robot}, 403, "may only read its own namespace", "", nil},
		{"and writing", nobody, "POST", boats, []string{"Authorization", robot}, 403, "may only read its own namespace", "", nil},
		{"and pretending", nobody, "POST", boats, spoofed, 403, "may only read its own namespace", "", nil},
		{"a node", node, "GET", boats, nil, 403, `cannot list resource \"boats\" in API group \"boats.example.org\"`, "", nil},
		{"nobody, pretending", nobody, "GET", boats, spoofed[:len(spoofed)-2], 401, "Unauthorized", "", nil},
		{"a way around", admin, "GET", boats + "/../../../secrets", nil, 404, "could not find", "", nil},
		{"an escaped slash", admin, "GET", boats + "/x%2Flog", nil, 404, "could not find", "", nil},
		{"another namespace by one", admin, "GET", strings.TrimSuffix(boats, "/boats") + "%2F..%2Fvictim/boats", nil, 404, "could not find", "", nil},
		{"an escaped one", admin, "GET", boats + "/%2e%2e/%2e%2e", nil, 404, "could not find", "", nil},
		{"no resource", admin, "GET", "/apis/boats.example.org/v1//boats", nil, 404, "could not find", "", nil},
		{"another version", admin, "GET", "/apis/boats.example.org/v2/boats", nil, 404, "could not find", "", nil},
	} {
		before := e.last()
		code, body := x.do(q.who, q.method, q.path, "", q.headers...)
		if code != q.code || !strings.Contains(body, q.says) {
			t.Errorf("%s: %d %s\nwant %d %s", q.name, code, body, q.code, q.says)
		}
		h := e.last()
		if q.user == "" {
			if len(h) != len(before) {
				t.Errorf("%s: it came through: %v", q.name, h)
			}
			continue
		}
		got := slices.Sorted(slices.Values(h["X-Remote-Group"]))
		if !slices.Equal(h["X-Remote-User"], []string{q.user}) || !slices.Equal(got, q.groups) {
			t.Errorf("%s: user %q, groups %q", q.name, h["X-Remote-User"], got)
		}
		for name, values := range h {
			plain := strings.ReplaceAll(http.CanonicalHeaderKey(name), "_", "-")
			if plain == "Authorization" || strings.HasPrefix(plain, "Impersonate-") || plain == "X-Remote-Uid" && values[0] == "7" ||
				plain == "X-Remote-Extra-Scopes" || strings.Contains(name, "_") {
				t.Errorf("%s: %s: %s came through", q.name, name, values)
			}
		}
	}
}

// The headers of the front proxy mean nothing to us, with its certificate or without: no request of ours comes by one.
func TestUserHeadersAreNotBelieved(t *testing.T) {
	x := startExtended(t)
	pretend := []string{"X-Remote-User", "root", "X-Remote-Group", "system:masters"}
	if code, body := x.do(x.user("somebody"), "GET", "/api/v1/pods", "", pretend...); code != 403 || !strings.Contains(body, `User \"somebody\"`) {
		t.Errorf("%d %s", code, body)
	}
	mine := x.ca
	x.ca = x.front
	h := x.user("front-proxy-client")
	x.ca = mine
	h.Transport.(*http.Transport).TLSClientConfig.RootCAs = mine.Pool()
	req, err := http.NewRequest("GET", "https://"+x.address+"/api/v1/pods", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Remote-User", "root")
	req.Header.Set("X-Remote-Group", "system:masters")
	if resp, err := h.Do(req); err == nil {
		resp.Body.Close() //nolint:errcheck // it is not read
		if resp.StatusCode != 401 {
			t.Errorf("with the front proxy's certificate: %d", resp.StatusCode)
		}
	}
}

// Whoever answers badly gets a Status said of it, in time, and the API goes on.
func TestBadAnswersOfServices(t *testing.T) {
	x := startExtended(t)
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	x.extend("boats", "boats.example.org", "", func(w http.ResponseWriter, req *http.Request) {
		switch name := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]; name {
		case "slow":
			select {
			case <-req.Context().Done():
			case <-hold:
			}
		case "away":
			http.Redirect(w, req, "https://elsewhere.example.org/", http.StatusFound)
		case "garbage", "half":
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()                                                                                                                                   //nolint:errcheck // a test
			io.WriteString(conn, map[string]string{"garbage": "\x00\x01\x02 what?\r\n\r\n", "half": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"}[name]) //nolint:errcheck // a test
		case "cors":
			w.Header().Set("Access-Control-Allow-Origin", "*")
			w.WriteHeader(http.StatusTeapot)
		case "upgrade":
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()                                                                                       //nolint:errcheck // a test
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n") //nolint:errcheck // a test
			line, _ := rw.ReadString('\n')                                                                           //nolint:errcheck // a test
			io.WriteString(conn, "you said "+line)                                                                   //nolint:errcheck // a test
		default:
			for i := range 3 {
				fmt.Fprintf(w, "event %d\n", i) //nolint:errcheck // a test
				w.(http.Flusher).Flush()
				if i == 1 {
					<-req.Context().Done() // the rest comes when nobody hears it
				}
			}
		}
	})
	x.until("v1.boats.example.org", "True")
	root := x.root()
	for _, q := range []struct {
		path string
		code int
		says string
	}{
		{"slow", 504, "service default/boats did not answer within 2s"},
		{"away", 502, "attempted to redirect this request, which is not permitted"},
		{"garbage", 503, "error trying to reach service: "},
		{"cors", 418, ""},
	} {
		code, body := x.do(root, "GET", boats+"/"+q.path, "")
		if code != q.code || !strings.Contains(body, q.says) || code > 500 && !strings.Contains(body, `"kind":"Status"`) {
			t.Errorf("%s: %d %s", q.path, code, body)
		}
	}
	for path, headers := range map[string]string{"half": "", "cors": "Access-Control-Allow-Origin"} {
		resp, err := root.Get("http://minik8s" + boats + "/" + path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close() //nolint:errcheck // it was read
		if (err != nil) != (path == "half") || headers != "" && resp.Header.Get(headers) != "" {
			t.Errorf("%s: %v %v", path, err, resp.Header)
		}
	}
	// A watch arrives piece by piece.
	sc := x.watch(boats + "?watch=1")
	for i := range 2 {
		if !sc.Scan() || sc.Text() != fmt.Sprint("event ", i) {
			t.Fatal(i, sc.Text(), sc.Err())
		}
	}
	// An upgraded connection carries both ways.
	conn, err := root.Transport.(*http.Transport).DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()                                                                                             //nolint:errcheck // the test is over
	fmt.Fprintf(conn, "GET %s/upgrade HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", boats) //nolint:errcheck // read below
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(err, resp)
	}
	io.WriteString(conn, "ahoy\n") //nolint:errcheck // read below
	if line, err := in.ReadString('\n'); err != nil || line != "you said ahoy\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// Discovery and requests follow what the APIService says of its Service; a group that is answered in process comes back
// when it is gone.
func TestServicesComeAndGo(t *testing.T) {
	x := startExtended(t, tides())
	x.until("v1beta1.tides.example.org", "Local")
	root := x.root()
	expect := func(path, accept string, code int, says string) {
		t.Helper()
		if got, body := x.do(root, "GET", path, "", "Accept", accept); got != code || !strings.Contains(body, says) {
			t.Errorf("%s: %d %s\nwant %d %s", path, got, body, code, says)
		}
	}
	const all = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	const apiServices, merge = "/apis/apiregistration.k8s.io/v1/apiservices", "application/merge-patch+json"
	e := x.extend("boats", "boats.example.org", "", says("boats for"))
	x.until("v1.boats.example.org", "True")
	expect("/apis", "", 200, `"name":"boats.example.org"`)
	expect("/apis/boats.example.org", "", 200, `"groupVersion":"boats.example.org/v1"`)
	expect("/apis/boats.example.org/v1", "", 200, `"name":"boats","singularName":"boat"`)
	expect("/apis", all, 200, `"resource":"boats","responseKind":{"group":"boats.example.org","version":"v1","kind":"Boat"}`)
	e.close(true)
	x.until("v1.boats.example.org", "False (FailedDiscoveryCheck)")
	expect(boats, "", 503, "APIService v1.boats.example.org is not available: FailedDiscoveryCheck")
	expect("/apis", all, 200, `"kind":"Boat"`) // what it said last
	expect("/apis", all, 200, `"freshness":"Stale"`)
	e.close(false)
	x.until("v1.boats.example.org", "True")
	expect(boats, "", 200, "boats for")
	x.do(root, "DELETE", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/boats-1", "")
	x.until("v1.boats.example.org", "False (EndpointsNotFound)")
	x.do(root, "DELETE", "/api/v1/namespaces/default/services/boats", "")
	x.until("v1.boats.example.org", "False (ServiceNotFound)")
	expect(boats, "", 503, "ServiceNotFound")

	// A Service takes the place of what is answered in process, and gives it back.
	expect(harbours, "", 200, `"kind":"Harbour"`)
	code, body := x.do(root, "PATCH", apiServices+"/v1beta1.tides.example.org", `{"spec":{"service":{"namespace":"default","name":"none"},"insecureSkipTLSVerify":true}}`, "Content-Type", merge)
	if code != 200 {
		t.Fatal(code, body)
	}
	x.until("v1beta1.tides.example.org", "False (ServiceNotFound)")
	expect(harbours, "", 503, "APIService v1beta1.tides.example.org is not available")
	x.do(root, "DELETE", apiServices+"/v1beta1.tides.example.org", "")
	x.until("v1beta1.tides.example.org", "Local")
	expect(harbours, "", 200, `"kind":"Harbour"`)
	x.do(root, "DELETE", apiServices+"/v1.boats.example.org", "")
	expect(boats, "", 404, "could not find the requested resource")
}

// A Service that does not answer keeps one client who asks what is in its group; others get what it said before.
func TestDiscoveryOfAServiceThatHangs(t *testing.T) {
	x := startExtended(t)
	e := x.extend("boats", "boats.example.org", "", says("boats for"))
	x.until("v1.boats.example.org", "True")
	root := x.root()
	const path, service = "/apis/boats.example.org/v1", "/apis/apiregistration.k8s.io/v1/apiservices/v1.boats.example.org"
	if code, body := x.do(root, "GET", path, ""); code != 200 || !strings.Contains(body, `"boats"`) {
		t.Fatal(code, body)
	}
	hung := make(chan struct{})
	e.mu.Lock()
	e.hung = hung
	e.mu.Unlock()
	if code, body := x.do(root, "PATCH", service, `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", "application/merge-patch+json"); code != 200 { // so it is asked again
		t.Fatal(code, body)
	}
	const clients = 8
	answers := make(chan string, clients)
	for range clients {
		go func() {
			code, body := x.do(root, "GET", path, "")
			answers <- fmt.Sprint(code, " ", body)
		}()
	}
	for range clients - 1 {
		if got := <-answers; !strings.HasPrefix(got, "200 ") || !strings.Contains(got, `"boats"`) {
			t.Error(got)
		}
	}
	select {
	case <-hung:
		t.Error("all waited until nobody asked any longer")
	default:
	}
	<-answers
}

// An APIService is a kind like others: applied, by a client and by the server, in protobuf, refused with all that is wrong.
func TestAPIServicesAreObjects(t *testing.T) {
	c := start(t)
	root := c.root()
	const all = "/apis/apiregistration.k8s.io/v1/apiservices"
	one := func(more string) string {
		return `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.boats.example.org"},"spec":{"group":"boats.example.org","version":"v1",` +
			`"groupPriorityMinimum":100,"versionPriority":100` + more + `}}`
	}
	for _, x := range []struct {
		name, method, path, body string
		headers                  []string
		code                     int
		says                     string
	}{
		{"made", "POST", all, one(""), nil, 201, `"reason":"Local"`},
		{"applied", "PATCH", all + "/v1.boats.example.org?fieldManager=a&force=true", one(`,"caBundle":"eA==","service":{"namespace":"a","name":"b"}`), []string{"Content-Type", "application/apply-patch+yaml"}, 200, `"port":443`},
		{"applied again", "PATCH", all + "/v1.boats.example.org?fieldManager=b", one(`,"caBundle":"eQ=="`), []string{"Content-Type", "application/apply-patch+yaml"}, 409, ".spec.caBundle"},
		{"its status", "PATCH", all + "/v1.boats.example.org/status", `{"status":{"conditions":[{"type":"Available","status":"Maybe"}]}}`, []string{"Content-Type", "application/merge-patch+json"}, 422, `status.conditions[0].status: Unsupported value: \"Maybe\"`},
		{"in protobuf", "GET", all + "/v1.boats.example.org", "", []string{"Accept", "application/vnd.kubernetes.protobuf"}, 200, "k8s\x00"},
		{"everything wrong", "POST", all, `{"metadata":{"name":"x"},"spec":{"version":"V","groupPriorityMinimum":-1}}`, nil, 422, "spec.versionPriority"},
		{"what is compiled in", "POST", all, strings.ReplaceAll(one(`,"service":{"namespace":"a","name":"b"}`), "boats.example.org", "apps"), nil, 422, "apps/v1 is the cluster's own"},
	} {
		if code, body := c.do(root, x.method, x.path, x.body, x.headers...); code != x.code || !strings.Contains(body, x.says) {
			t.Errorf("%s: %d %s", x.name, code, body)
		}
	}
}

// A Service is known by its certificate, unless the APIService does without.
func TestCertificatesOfServices(t *testing.T) {
	x := startExtended(t)
	x.extend("trusting", "trusting.example.org", `"insecureSkipTLSVerify":true`, says("welcome"))
	x.extend("unknown", "unknown.example.org", `"caBundle":"`+"bm90IGEgY2VydGlmaWNhdGU="+`"`, says("welcome"))
	x.extend("strange", "strange.example.org", `"caBundle":null`, says("welcome"))
	x.until("v1.trusting.example.org", "True")
	x.until("v1.unknown.example.org", "False (FailedDiscoveryCheck)")
	x.until("v1.strange.example.org", "False (FailedDiscoveryCheck)")
	if code, body := x.do(x.root(), "GET", "/apis/trusting.example.org/v1/boats", ""); code != 200 {
		t.Error(code, body)
	}
	for name, says := range map[string]string{"unknown": "spec.caBundle of the APIService has no certificate in PEM", "strange": "unknown authority"} {
		if _, body := x.do(x.root(), "GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1."+name+".example.org", ""); !strings.Contains(body, says) {
			t.Errorf("%s: %s", name, body)
		}
	}
}

// What an extension API server reads and asks is open to service accounts where an APIService says so, and to no others.
func TestRightsOfExtensionServers(t *testing.T) {
	x := startExtended(t)
	e := x.extend("boats", "boats.example.org", "", says("boats for"))
	other := "Bearer " + x.token("kube-node-lease", "robot")
	const trust = "/api/v1/namespaces/kube-system/configmaps"
	const reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	review := `{"spec":{"user":"x","resourceAttributes":{"verb":"get","resource":"pods"}}}`
	for _, q := range []struct {
		name, token, method, path, body string
		code                            int
	}{
		{"the ConfigMap", other, "GET", trust + "/extension-apiserver-authentication", "", 200},
		{"in a list", other, "GET", trust + "?fieldSelector=metadata.name%3Dextension-apiserver-authentication", "", 200},
		{"another", other, "GET", trust + "/kube-root-ca.crt", "", 403},
		{"all of them", other, "GET", trust, "", 403},
		{"changing it", other, "PATCH", trust + "/extension-apiserver-authentication", `{"data":{"x":"y"}}`, 403},
		{"a review, of no extension", other, "POST", reviews, review, 403},
		{"a review", "Bearer " + e.token, "POST", reviews, review, 201},
		{"a token's review", "Bearer " + e.token, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", `{"spec":{"token":"x"}}`, 201},
		{"an APIService", "Bearer " + e.token, "PATCH", "/apis/apiregistration.k8s.io/v1/apiservices/v1.boats.example.org", `{"spec":{"groupPriorityMinimum":7}}`, 403},
		{"the status of one", "Bearer " + e.token, "PATCH", "/apis/apiregistration.k8s.io/v1/apiservices/v1.boats.example.org/status", `{"status":{}}`, 403},
	} {
		if code, body := x.do(x.user(""), q.method, q.path, q.body, "Authorization", q.token, "Content-Type", "application/merge-patch+json"); code != q.code {
			t.Errorf("%s: %d %s", q.name, code, body)
		}
	}
}
