package apiserver_test

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
)

// nodeRequest is a request by a node, and what Kubernetes says to it: testdata/oracle/node makes the file of them.
type nodeRequest struct {
	User, Method, Path string
	Body               json.RawMessage
	Apply              bool
	Verdict            string
}

// A difference is meant: why, what Kubernetes' verdict is, and of which requests, by our answer to them.
type difference struct {
	why     string
	verdict string
	is      func(r nodeRequest, answer string) bool
}

// ours are the requests to which we mean to give another answer than Kubernetes.
var ours = []difference{
	{"there are no static pods, so a node makes no mirror pods", "allowed", func(r nodeRequest, _ string) bool {
		return r.Method == "POST" && strings.HasSuffix(r.Path, "/pods")
	}},
	{"a node's kubelet is asked by certificate only, so it reviews no tokens and no rights of others", "allowed", func(r nodeRequest, _ string) bool {
		return strings.HasSuffix(r.Path, "/tokenreviews") || strings.HasSuffix(r.Path, "/subjectaccessreviews") || strings.HasSuffix(r.Path, "/localsubjectaccessreviews")
	}},
	{"Endpoints were read for glusterfs volumes, which are none of ours", "allowed", func(r nodeRequest, _ string) bool {
		return r.Method == "GET" && strings.HasSuffix(r.Path, "/endpoints/absent")
	}},
	{"the proxy of a node reads by the node's own name; in Kubernetes it is another user", "refused", func(r nodeRequest, _ string) bool {
		return r.Method == "GET" && strings.Contains(r.Path, "/endpointslices")
	}},
	{"the gateway of a node, and its network, read by the node's own name; in Kubernetes they are other users", "refused", func(r nodeRequest, _ string) bool {
		return r.Method == "GET" && strings.HasPrefix(r.Path, "/apis/networking.k8s.io/") && !strings.HasSuffix(r.Path, "/status")
	}},
	{"whom a NetworkPolicy lets in depends on the namespaces' labels, and every node carries policies out by its own name", "refused", func(r nodeRequest, _ string) bool {
		of, name, _ := strings.Cut(strings.TrimPrefix(r.Path, "/api/v1/"), "/")
		of, _, _ = strings.Cut(of, "?")
		return r.Method == "GET" && of == "namespaces" && !strings.Contains(name, "/")
	}},
	{"of what a write of the status cannot change, nothing is taken, whoever writes; so nothing is refused either", "refused", func(r nodeRequest, answer string) bool {
		return r.Path == "/api/v1/nodes/n1/status" && strings.Contains(answer, `"example.com/only"`) && !strings.Contains(answer, `"ownerReferences"`)
	}},
}

// The rights of nodes are those that they have in Kubernetes, by the node authorizer and the admission plugin
// NodeRestriction, but for those that are named above.
func TestNodeRightsAsUpstream(t *testing.T) {
	data, err := os.ReadFile("../registry/authorization/testdata/nodes.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Users map[string]struct {
			Name   string
			Groups []string
		}
		Cluster struct {
			Nodes []*corev1.Node
			Pods  []*corev1.Pod
		}
		Requests []nodeRequest
	}
	if err := json.Unmarshal(data, &file); err != nil || len(file.Requests) < 1000 {
		t.Fatal(len(file.Requests), err)
	}
	c := start(t)
	root := c.root()
	var uids []string // what stands for a UID in the file, and the one here
	create := func(path, stands string, obj any) {
		t.Helper()
		code, body := c.do(root, "POST", path, encoded(t, obj))
		if code != http.StatusCreated {
			t.Fatal(path, code, body)
		}
		if stands != "" {
			uids = append(uids, stands, uidOf(t, body))
		}
	}
	for _, n := range file.Cluster.Nodes {
		stands := string(n.UID)
		n.UID = ""
		create("/api/v1/nodes", stands, n)
		create(leasesPath, "", map[string]any{"metadata": map[string]any{"name": n.Name}})
	}
	accounts := map[string]bool{}
	for _, p := range file.Cluster.Pods {
		base := "/api/v1/namespaces/" + p.Namespace
		if key := p.Namespace + p.Spec.ServiceAccountName; !accounts[key] {
			accounts[key] = true
			create(base+"/serviceaccounts", "", map[string]any{"metadata": map[string]any{"name": p.Spec.ServiceAccountName}})
		}
		bare := p.DeepCopy()
		bare.UID, bare.Spec.EphemeralContainers = "", nil
		create(base+"/pods", string(p.UID), bare)
		if len(p.Spec.EphemeralContainers) > 0 {
			bare.Spec.EphemeralContainers = p.Spec.EphemeralContainers
			if code, body := c.do(root, "PUT", base+"/pods/"+p.Name+"/ephemeralcontainers", encoded(t, bare)); code != http.StatusOK {
				t.Fatal(code, body)
			}
		}
	}
	actual := strings.NewReplacer(uids...)
	clients := map[string]*http.Client{}
	for key, u := range file.Users {
		h := c.user(u.Name, u.Groups...)
		h.Transport.(*http.Transport).DisableKeepAlives = false // thousands of requests
		defer h.CloseIdleConnections()
		clients[key] = h
	}
	count, met := map[string]int{}, make([]int, len(ours))
	for _, r := range file.Requests {
		count[r.Verdict]++
		path, headers := r.Path, []string{"Content-Type", "application/json"}
		switch {
		case r.Apply:
			headers[1] = "application/apply-patch+yaml"
		case r.Method == "PATCH":
			headers[1] = "application/merge-patch+json"
		}
		if r.Method != "GET" { // so that each is judged in the same cluster
			path = withQuery(path, "dryRun=All")
		}
		if r.Apply {
			path = withQuery(path, "fieldManager=test")
		}
		code, body := c.do(clients[r.User], r.Method, path, actual.Replace(string(r.Body)), headers...)
		got := "allowed"
		if code == http.StatusForbidden || code == http.StatusMethodNotAllowed {
			got = "refused"
		}
		if code == http.StatusUnauthorized || code >= 500 && code != http.StatusGatewayTimeout {
			t.Errorf("%s: %s %s: %d %s", r.User, r.Method, r.Path, code, body)
		}
		if got == r.Verdict || r.Verdict == "absent" {
			continue
		}
		if i := slices.IndexFunc(ours, func(d difference) bool { return d.verdict == r.Verdict && d.is(r, body) }); i >= 0 {
			met[i]++
			continue
		}
		t.Errorf("%s: %s %s %s: upstream: %s, ours: %d %s", r.User, r.Method, r.Path, r.Body, r.Verdict, code, strings.TrimSpace(body))
	}
	for i, d := range ours {
		if met[i] == 0 {
			t.Errorf("no request differs for the reason that %s", d.why)
		}
	}
	if count["allowed"] < 100 || count["refused"] < 100 {
		t.Errorf("upstream's verdicts: %v", count)
	}
	for _, k := range api.Builtin() { // a new kind is to be judged, too
		if k.Group != api.Peers.Group && !slices.ContainsFunc(file.Requests, func(r nodeRequest) bool { return strings.HasSuffix(r.Path, "/"+k.Plural) }) {
			t.Errorf("nothing is asked about %s: it belongs into testdata/oracle/node", k.Plural)
		}
	}
}

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

func encoded(t *testing.T, obj any) string {
	t.Helper()
	raw, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func uidOf(t *testing.T, body string) string {
	t.Helper()
	var obj struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal([]byte(body), &obj); err != nil || obj.Metadata.UID == "" {
		t.Fatal(body, err)
	}
	return obj.Metadata.UID
}

func withQuery(path, query string) string {
	if strings.Contains(path, "?") {
		return path + "&" + query
	}
	return path + "?" + query
}
