package apiserver_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

// Who may do what with workflows, and what is refused with which words.
func TestWorkflowsByHTTP(t *testing.T) {
	seed, err := os.ReadFile("../../testdata/dialects/x-workflow.json")
	if err != nil {
		t.Fatal(err)
	}
	c := start(t)
	root, alice, node := c.root(), c.user("alice"), c.user("system:node:here", "system:nodes")
	account := c.user("system:serviceaccount:default:default", "system:serviceaccounts", "system:serviceaccounts:default")
	const base = "/apis/minik8s.io/v1/namespaces/default/"
	const run = `{"metadata":{"name":"r"},"spec":{"workflow":"print","input":{"x":1}}}`
	const step = `{"metadata":{"name":"r.1.0"},"spec":{"run":"r","number":0,"state":"a","type":"Pass","event":"Succeeded","entered":"2026-01-02T03:04:05.000000Z","time":"2026-01-02T03:04:05.000000Z"}}`
	for i, x := range []struct {
		who                string
		method, path, body string
		want               int
		says               string
	}{
		{"alice", "POST", "workflows", string(seed), 403, "cannot create"},
		{"node", "POST", "workflows", string(seed), 403, "cannot create"},
		{"account", "POST", "workflows", string(seed), 403, "cannot create"},
		{"root", "POST", "workflows", string(seed), 201, `"StartAt":"addFive"`},
		{"root", "GET", "workflows/print", "", 200, `"params":{"x":5}`},
		{"alice", "GET", "workflows/print", "", 403, "cannot get"},
		{"node", "GET", "workflowruns", "", 403, "cannot list"},
		{"root", "POST", "workflows", `{"metadata":{"name":"bad"},"spec":{"definition":{"StartAt":"A","States":{"B":{"Type":"Pass","Next":"C"}}}}}`, 422, "spec.definition.States[B].Next"},
		{"root", "POST", "workflows", `{"metadata":{"name":"bad"},"spec":{"definition":{"StartAt":"A","States":{"B":{"Type":"Pass","Next":"C"}}}}}`, 422, "spec.definition.StartAt"},
		{"root", "POST", "workflows", `{"metadata":{"name":"none"},"spec":{}}`, 422, "spec.definition: Required"},
		{"root", "POST", "workflows", `{"metadata":{"name":"call"},"spec":{"definition":{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"no such","End":true}}}}}`, 422, "States[A].Resource"},
		{"alice", "POST", "workflowruns", run, 403, "cannot create"},
		{"node", "POST", "workflowruns", run, 403, "cannot create"},
		{"account", "POST", "workflowruns", run, 403, "cannot create"},
		{"root", "POST", "workflowruns", `{"metadata":{"name":"r"},"spec":{}}`, 422, "spec.workflow: Required"},
		{"root", "POST", "workflowruns", run, 201, `"ownerReferences":[{"apiVersion":"minik8s.io/v1","kind":"Workflow","name":"print"`},
		{"root", "PATCH", "workflowruns/r", `{"spec":{"input":2}}`, 422, "a run cannot be changed"},
		{"alice", "PATCH", "workflowruns/r", `{"spec":{"cancel":true}}`, 403, "cannot patch"},
		{"root", "PATCH", "workflowruns/r", `{"spec":{"cancel":true}}`, 200, `"cancel":true`},
		{"root", "PATCH", "workflowruns/r", `{"spec":{"cancel":false}}`, 422, "stays so"},
		{"root", "PATCH", "workflowruns/r/status", `{"status":{"state":"Done"}}`, 422, "status.state"},
		{"root", "PATCH", "workflowruns/r/status", `{"status":{"state":"Succeeded"}}`, 200, ""},
		{"root", "PATCH", "workflowruns/r/status", `{"status":{"state":"Running"}}`, 422, "the run has ended"},
		{"root", "POST", "workflowruns", `{"metadata":{"name":"s"},"spec":{"workflow":"print","input":"` + strings.Repeat("<&>", 60<<10/3) + `"}}`, 201, ""},
		{"root", "PATCH", "workflowruns/s", `{"spec":{"cancel":true}}`, 200, `"cancel":true`},
		{"alice", "POST", "workflowsteps", step, 403, "cannot create"},
		{"node", "POST", "workflowsteps", step, 403, "cannot create"},
		{"root", "POST", "workflowsteps", step, 201, ""},
		{"root", "POST", "workflowsteps", step, 409, "already exists"},
		{"root", "PATCH", "workflowsteps/r.1.0", `{"spec":{"state":"b"}}`, 422, "what has happened cannot be changed"},
		{"root", "PATCH", "workflows/print", `{"spec":{"definition":{"States":{"printEquals":{"Next":"nowhere","End":null}}}}}`, 422, "nowhere"},
		{"root", "DELETE", "workflows/print", "", 200, ""},
	} {
		who := map[string]*http.Client{"root": root, "alice": alice, "node": node, "account": account}[x.who]
		kind := "application/json"
		if x.method == "PATCH" {
			kind = "application/merge-patch+json"
		}
		if code, body := c.do(who, x.method, base+x.path, x.body, "Content-Type", kind); code != x.want || !strings.Contains(strings.ReplaceAll(body, `\"`, `"`), x.says) {
			t.Errorf("%d: %s %s %s: %d %s", i, x.who, x.method, x.path, code, body)
		}
	}
}
