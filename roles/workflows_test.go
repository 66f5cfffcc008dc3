package roles_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
)

// runs are all runs, by their names.
func (c *caller) runs() map[string]*minik8s.WorkflowRun {
	c.t.Helper()
	all, _, err := client.All[*minik8s.WorkflowRun](context.Background(), c.api, api.WorkflowRuns, client.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	out := map[string]*minik8s.WorkflowRun{}
	for _, r := range all {
		out[r.Name] = r
	}
	return out
}

// The first seed system's workflow, word for word, both ways.
func TestPrintWorkflow(t *testing.T) {
	c := newFunctions(t, 18091)
	for _, name := range []string{"addFive", "printEquals", "printNotEquals"} {
		c.ctl("func", "add", "-f", name, "-p", "../testdata/functions/"+name+".py")
	}
	out := c.ctl("wf", "apply", "-f", "../testdata/dialects/x-workflow.json")
	if !strings.Contains(out, "created") {
		t.Errorf("apply: %q", out)
	}
	if out := c.ctl("wf", "watch", "print"); !strings.Contains(out, `"printed":"equals"`) && !strings.Contains(out, `"printed": "equals"`) || !strings.Contains(out, "Succeeded after 3 steps") {
		t.Errorf("applied: %q", out)
	}
	if out := c.ctl("wf", "run", "print", "-d", `{"x": 6}`, "--wait"); !strings.Contains(out, `not equals`) || !strings.Contains(out, "judge  Succeeded -> printNotEquals") {
		t.Errorf("the other way: %q", out)
	}
	if out := c.ctl("get", "wf,wfr"); !strings.Contains(out, "print") || !strings.Contains(out, "Succeeded") {
		t.Errorf("get: %q", out)
	}
	wf, err := client.Get[*minik8s.Workflow](context.Background(), c.api, client.Key{Kind: api.Workflows, Namespace: "default", Name: "print"})
	if err != nil {
		t.Fatal(err)
	}
	c.eventually("the run's trace in a function's log", func() bool {
		out, err := c.command("ctl", "func", "logs", "printEquals")
		return err == nil && strings.Contains(out, "trace "+strings.ReplaceAll(string(c.runs()[wf.Status.LastRun].UID), "-", ""))
	})
	if out := c.ctl("wf", "graph", wf.Status.LastRun); !strings.Contains(out, "* printEquals  [Task printEquals]") || !strings.Contains(out, "o printNotEquals") || !strings.Contains(out, "x == 10 ==> printEquals") {
		t.Errorf("graph: %s", out)
	}
	if out := c.ctl("wf", "graph", "print", "--svg"); !strings.HasPrefix(out, "<svg") {
		t.Errorf("svg: %.100s", out)
	}
	// A definition with mistakes is refused with all of them; one that changes starts another run.
	out, err = c.command("ctl", "wf", "apply", "-f", "testdata/bad-workflow.json")
	if err == nil || !strings.Contains(out, `did you mean addFive`) || !strings.Contains(out, `printEqals`) || !strings.Contains(out, "NumericAbove") {
		t.Errorf("mistakes: %v %s", err, out)
	}
	if out := c.ctl("apply", "-f", "testdata/print-again.json"); !strings.Contains(out, "configured") {
		t.Errorf("changed: %s", out)
	}
	c.eventually("the run of the change", func() bool {
		for _, r := range c.runs() {
			if string(r.FirstInput().Raw) == `{"x":7}` {
				return r.Status.State == minik8s.RunSucceeded
			}
		}
		return false
	})
	c.ctl("wf", "rm", "print")
	c.eventually("its runs and their steps go with it", func() bool {
		steps, _, err := client.All[*minik8s.WorkflowStep](context.Background(), c.api, api.WorkflowSteps, client.ListOptions{})
		return err == nil && len(steps) == 0 && len(c.runs()) == 0
	})
}

// The second seed system's chain of functions, as a graph and as a workflow.
func TestChainWorkflow(t *testing.T) {
	c := newFunctions(t, 18093)
	for name, next := range map[string]string{"is_hello": "append_world", "append_world": "RETURN"} {
		source, err := os.ReadFile("../testdata/functions/" + name + ".py")
		if err != nil {
			t.Fatal(err)
		}
		c.add(name, string(source), func(s *minik8s.FunctionSpec) {
			s.Left, s.Right = next, "RETURN"
		})
	}
	if out := c.ctl("wf", "graph", "is_hello"); !strings.Contains(out, "left --> append_world") || !strings.Contains(out, "right --> (end)") || !strings.Contains(out, "[Task append_world]") {
		t.Errorf("graph: %s", out)
	}
	c.ctl("wf", "apply", "--chain", "is_hello")
	for arg, steps := range map[string]string{"hello": "after 2 steps", "hi": "after 1 steps"} {
		if out := c.ctl("wf", "run", "is_hello", "-d", `"`+arg+`"`, "--wait"); !strings.Contains(out, steps) || strings.Contains(out, "world") != (arg == "hello") {
			t.Errorf("%s: %s", arg, out)
		}
	}
}

// Runs go on when the daemon is killed: steps that are committed are not done again, and calls that are not are made anew.
func TestWorkflowsOutliveTheDaemon(t *testing.T) {
	c := newFunctions(t, 18092)
	c.add("slow", "import time\ndef main(params):\n    time.sleep(0.3)\n    return params + [len(params)]\n", nil)
	wf := &minik8s.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "chain"}, Spec: minik8s.WorkflowSpec{Definition: minik8s.JSON{Raw: []byte(`{"StartAt":"a","States":{
		"a":{"Type":"Task","Resource":"slow","Next":"b"},"b":{"Type":"Wait","Seconds":1,"Next":"p"},
		"p":{"Type":"Parallel","Next":"c","Branches":[{"StartAt":"p1","States":{"p1":{"Type":"Task","Resource":"slow","End":true}}},{"StartAt":"p2","States":{"p2":{"Type":"Task","Resource":"slow","Next":"p3"},"p3":{"Type":"Task","Resource":"slow","End":true}}}],"OutputPath":"$[1]"},
		"c":{"Type":"Task","Resource":"slow","End":true}}}`)}}}
	if _, err := c.api.Create(context.Background(), wf, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		c.ctl("wf", "run", "chain", "-d", "[]")
	}
	for _, least := range []int{2, 12, 22} { // after some of the 35 steps
		c.eventually("some steps", func() bool {
			steps, _, err := client.All[*minik8s.WorkflowStep](context.Background(), c.api, api.WorkflowSteps, client.ListOptions{})
			return err == nil && len(steps) >= least
		})
		c.kill()
		c.api = c.up()
	}
	c.eventually("all succeed", func() bool {
		done := 0
		for _, r := range c.runs() {
			if s := r.Status; s.State == minik8s.RunSucceeded && string(s.Output.Raw) == "[0,1,2,3]" && s.Steps == 7 {
				done++
			} else if s.Ended() {
				t.Fatalf("%+v", s)
			}
		}
		return done == 5
	})
}

// A service account reads the workflows of its own namespace and changes nothing, by HTTPS; one of another namespace gets nothing. They are told
// what they may not.
func TestWorkflowsOfStrangers(t *testing.T) {
	c := newFunctions(t, 18094)
	wf := &minik8s.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w"}, Spec: minik8s.WorkflowSpec{Definition: minik8s.JSON{Raw: []byte(`{"StartAt":"a","States":{"a":{"Type":"Pass","End":true}}}`)}}}
	if _, err := c.api.Create(context.Background(), wf, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.api.Create(context.Background(), &minik8s.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "r"}, Spec: minik8s.WorkflowRunSpec{Workflow: "w"}}, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	tokens := map[string]string{}
	for who, namespace := range map[string]string{"own": "default", "stranger": "kube-system"} {
		c.eventually("a token of "+namespace, func() bool {
			var made struct{ Status struct{ Token string } }
			answer := c.ask(http.MethodPost, "/api/v1/namespaces/"+namespace+"/serviceaccounts/default/token", `{"spec":{}}`)
			if json.Unmarshal([]byte(answer), &made) != nil {
				t.Fatal(answer)
			}
			tokens[who] = made.Status.Token
			return tokens[who] != ""
		})
	}
	ca, err := os.ReadFile(filepath.Join(c.dir, "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(ca)
	https := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: known}}}
	defer https.CloseIdleConnections()
	const base, run = "/apis/minik8s.io/v1/namespaces/default/", `{"apiVersion":"minik8s.io/v1","kind":"WorkflowRun","metadata":{"name":"r"},"spec":{"workflow":"w","input":1}}`
	const step = `{"apiVersion":"minik8s.io/v1","kind":"WorkflowStep","metadata":{"name":"r.1.0"},"spec":{"run":"r","number":0,"state":"a","type":"Pass","event":"Succeeded","entered":"2026-01-02T03:04:05.000000Z","time":"2026-01-02T03:04:05.000000Z"}}`
	for _, x := range []struct {
		who, method, path, body string
		want                    int
		says                    string
	}{
		{"", "GET", "workflows", "", 401, "Unauthorized"},
		{"own", "GET", "workflows/w", "", 200, `"name":"w"`},
		{"own", "GET", "workflowruns/r", "", 200, `"name":"r"`},
		{"own", "DELETE", "workflows/w", "", 403, `cannot delete resource "workflows"`},
		{"own", "PATCH", "workflows/w", `{"spec":{"params":1}}`, 403, `cannot patch resource "workflows"`},
		{"own", "POST", "workflowruns", run, 403, `cannot create resource "workflowruns"`},
		{"own", "PATCH", "workflowruns/r", `{"spec":{"cancel":true}}`, 403, `cannot patch resource "workflowruns"`},
		{"own", "PUT", "workflowruns/r/status", run, 403, `cannot update resource "workflowruns/status"`},
		{"own", "POST", "workflowsteps", step, 403, `cannot create resource "workflowsteps"`},
		{"stranger", "GET", "workflows", "", 403, `cannot list resource "workflows"`},
		{"stranger", "GET", "workflows/w", "", 403, `cannot get resource "workflows"`},
		{"stranger", "GET", "workflowruns?watch=1", "", 403, `cannot watch resource "workflowruns"`},
		{"stranger", "GET", "workflowsteps", "", 403, `cannot list resource "workflowsteps"`},
		{"stranger", "POST", "workflowruns", run, 403, `cannot create resource "workflowruns"`},
	} {
		req, err := http.NewRequest(x.method, "https://127.0.0.1:6443"+base+x.path, strings.NewReader(x.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", map[bool]string{true: "application/merge-patch+json", false: "application/json"}[x.method == "PATCH"])
		if x.who != "" {
			req.Header.Set("Authorization", "Bearer "+tokens[x.who])
		}
		resp, err := https.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close() //nolint:errcheck // it was read
		if err != nil || resp.StatusCode != x.want || !strings.Contains(strings.ReplaceAll(string(text), `\"`, `"`), x.says) {
			t.Errorf("%s %s %s: %d %s %v", x.who, x.method, x.path, resp.StatusCode, text, err)
		}
	}
	if runs := c.runs(); len(runs) != 1 || runs["r"].Spec.Cancel {
		t.Errorf("something has been done: %v", runs)
	}
}
