package apiserver_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/registry/registrytest"
)

// TestJobsLeaveTheirPods: who deletes a job and says nothing of its pods leaves them behind, and is told so; who
// says something gets that. Other kinds take what they own along.
func TestJobsLeaveTheirPods(t *testing.T) {
	c := start(t)
	root := c.root()
	const jobs = "/apis/batch/v1/namespaces/default/jobs"
	const orphan, foreground = metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents
	ask := func(method, path, body string) *http.Response {
		t.Helper()
		req, err := http.NewRequest(method, "http://minik8s"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := root.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close() //nolint:errcheck // it was read
		if err != nil || resp.StatusCode >= 300 {
			t.Fatal(method, path, resp.StatusCode, string(b), err)
		}
		return resp
	}
	const warning = `299 - "child pods are preserved by default when jobs are deleted; ` +
		`set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"`
	for i, x := range []struct {
		have, query, body string
		collection        bool
		warned            bool
		want              string // the finalizer it then has; "": it is gone
	}{
		{warned: true, want: orphan},
		{body: `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`, warned: true, want: orphan},
		{have: foreground, warned: true, want: foreground},
		{query: "propagationPolicy=Background"},
		{have: orphan, query: "propagationPolicy=Background"},
		{query: "propagationPolicy=Orphan", want: orphan},
		{query: "propagationPolicy=Foreground", want: foreground},
		{query: "orphanDependents=false"},
		{body: `{"orphanDependents":true}`, want: orphan},
		{body: `{"orphanDependents":false}`},
		{collection: true, warned: true, want: orphan},
		{collection: true, query: "propagationPolicy=Background"},
	} {
		t.Run(fmt.Sprintf("%+v", x), func(t *testing.T) {
			name := fmt.Sprint("j", i)
			finalizers := ""
			if x.have != "" {
				finalizers = fmt.Sprintf(`,"finalizers":[%q]`, x.have)
			}
			ask("POST", jobs, fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"nr":%q}%s},
				"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`, name, name, finalizers))
			path := jobs + "/" + name + "?" + x.query
			if x.collection {
				path = jobs + "?labelSelector=nr=" + name + "&" + x.query
			}
			got := ask("DELETE", path, x.body).Header.Values("Warning")
			if slices.Contains(got, warning) != x.warned || len(got) > 1 {
				t.Errorf("warnings: %q", got)
			}
			e, err := c.reg.Get(t.Context(), registrytest.Ask("get", api.Jobs, "default", name, ""))
			switch {
			case x.want == "" && err == nil:
				t.Errorf("it is still there: %v", e.Object().GetFinalizers())
			case x.want != "" && (err != nil || !slices.Equal(e.Object().GetFinalizers(), []string{x.want})):
				t.Errorf("%v, %v: want the finalizer %s", e, err, x.want)
			}
		})
	}
	ask("POST", cms, `{"metadata":{"name":"plain"}}`)
	if got := ask("DELETE", cms+"/plain", "").Header.Values("Warning"); len(got) > 0 {
		t.Errorf("of a ConfigMap: %q", got)
	}
}
