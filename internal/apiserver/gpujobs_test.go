package apiserver_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/store"
)

const (
	gpuJobsPath = "/apis/minik8s.io/v1/namespaces/default/gpujobs"
	secretsPath = "/api/v1/namespaces/default/secrets"
)

// loginTest is a cluster in which some words must be found nowhere but in Secrets.
type loginTest struct {
	*cluster
	hidden []string
}

// seen fails the test if a word that must not be seen is in a text.
func (c *loginTest) seen(where, text string) {
	c.t.Helper()
	for _, h := range c.hidden {
		if strings.Contains(text, h) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(h))) {
			c.t.Errorf("%s has %q: %.400s", where, h, text)
		}
	}
}

// ask sends a request, and checks the answer and its warnings.
func (c *loginTest) ask(want int, method, path, body string, headers ...string) string {
	c.t.Helper()
	req, err := http.NewRequest(method, "http://minik8s"+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.root().Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(resp.Body); err != nil {
		c.t.Fatal(err)
	}
	if resp.StatusCode != want {
		c.t.Errorf("%s %s: %d, want %d: %s", method, path, resp.StatusCode, want, answer.String())
	}
	if !strings.HasPrefix(path, secretsPath) {
		c.seen("the answer to "+method+" "+path, answer.String()+fmt.Sprint(resp.Header))
	}
	return answer.String()
}

// clean looks for the words in everything that was ever stored, and in what the server said.
func (c *loginTest) clean() {
	c.t.Helper()
	c.seen("the log", c.said.String())
	w, err := c.kept.History(c.t.Context(), "", 0)
	if err != nil {
		c.t.Fatal(err)
	}
	defer w.Stop()
	events := 0
	for b := range w.Batches() {
		for _, e := range b.Events {
			events++
			if e.Type == store.Put && !strings.Contains(e.KV.Key, "/secrets/") {
				c.seen(e.KV.Key, string(e.KV.Value))
			}
		}
	}
	if events == 0 {
		c.t.Error("there is no history")
	}
}

func (c *loginTest) job(name string) *minik8s.GpuJob {
	c.t.Helper()
	j := &minik8s.GpuJob{}
	if err := json.Unmarshal([]byte(c.ask(200, "GET", gpuJobsPath+"/"+name, "")), j); err != nil {
		c.t.Fatal(err)
	}
	return j
}

// login checks the Secret of a job, and returns it.
func (c *loginTest) login(job *minik8s.GpuJob, user, password string) *corev1.Secret {
	c.t.Helper()
	s := &corev1.Secret{}
	if err := json.Unmarshal([]byte(c.ask(200, "GET", secretsPath+"/"+minik8s.LoginSecretOf(job.Name), "")), s); err != nil {
		c.t.Fatal(err)
	}
	if string(s.Data["username"]) != user || string(s.Data["password"]) != password || s.Type != corev1.SecretTypeBasicAuth {
		c.t.Errorf("%s %q", s.Type, s.Data)
	}
	if o := metav1.GetControllerOf(s); o == nil || o.UID != job.UID || o.Kind != "GpuJob" || o.APIVersion != "minik8s.io/v1" || o.Name != job.Name {
		c.t.Errorf("%+v", s.OwnerReferences)
	}
	if job.Spec.LoginSecret != s.Name || job.Spec.Username != "" || job.Spec.Password != "" {
		c.t.Errorf("%+v", job.Spec)
	}
	return s
}

// withLastApplied is a manifest as kubectl apply sends it.
func withLastApplied(t *testing.T, manifest []byte) string {
	t.Helper()
	raw, err := yaml.YAMLToJSON(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	doc["metadata"].(map[string]any)["annotations"] = map[string]any{corev1.LastAppliedConfigAnnotation: string(raw) + "\n"}
	return encoded(t, doc)
}

func startLogins(t *testing.T, hidden ...string) *loginTest { return &loginTest{start(t), hidden} }

// The first seed system's manifest has a password: whatever way it comes, it is found in the job's Secret and nowhere else.
func TestGpuJobPasswords(t *testing.T) {
	manifest, err := os.ReadFile("../../testdata/dialects/x-gpujob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const user, password, other = "stu001", "the-Password-of-stu001", "Another-<one>"
	asJSON, err := yaml.YAMLToJSON(manifest)
	if err != nil {
		t.Fatal(err)
	}
	at := gpuJobsPath + "/matrix-ops"
	canonical := `{"apiVersion":"minik8s.io/v1","kind":"GpuJob","metadata":{"name":"matrix-ops"},"spec":{"runScripts":["./a"],"username":"stu001","password":"the-Password-of-stu001"}}`
	const merge, strategic, list, apply = "application/merge-patch+json", "application/strategic-merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
	for _, x := range []struct {
		name                        string
		create, method, path, again string // again is how the manifest comes the second time
		media                       string
		made                        int
	}{
		{"yaml, strategic", string(manifest), "PATCH", at, string(asJSON), strategic, 201},
		{"json, merge", string(asJSON), "PATCH", at, string(asJSON), merge, 201},
		{"kubectl apply, strategic", withLastApplied(t, manifest), "PATCH", at, withLastApplied(t, manifest), strategic, 201},
		{"kubectl apply, merge", withLastApplied(t, manifest), "PATCH", at, withLastApplied(t, manifest), merge, 201},
		{"canonical, put", canonical, "PUT", at, canonical, "application/json", 201},
		{"canonical with annotation, put", withLastApplied(t, []byte(canonical)), "PUT", at, withLastApplied(t, []byte(canonical)), "application/json", 201},
		{"canonical, json patch", canonical, "PATCH", at, `[{"op":"add","path":"/spec/username","value":"stu001"},{"op":"add","path":"/spec/password","value":"the-Password-of-stu001"}]`, list, 201},
		{"server-side", "", "PATCH", at + "?fieldManager=me", string(manifest), apply, 0},
		{"server-side over json", string(manifest), "PATCH", at + "?fieldManager=me&force=true", string(manifest), apply, 201},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := startLogins(t, password, other)
			dry := func(path string) string {
				if strings.Contains(path, "?") {
					return path + "&dryRun=All"
				}
				return path + "?dryRun=All"
			}
			again := func(want int, path, body string) string {
				return c.ask(want, x.method, path, body, "Content-Type", x.media)
			}
			if x.create != "" {
				c.ask(201, "POST", dry(gpuJobsPath), x.create)
				c.ask(404, "GET", secretsPath+"/gpujob-matrix-ops-login", "")
				c.ask(201, "POST", gpuJobsPath, x.create)
			} else {
				again(201, dry(x.path), x.again)
				c.ask(404, "GET", secretsPath+"/gpujob-matrix-ops-login", "")
				again(201, x.path, x.again)
			}
			first := c.job("matrix-ops")
			secret := c.login(first, user, password)
			for m := first.ManagedFields; len(m) > 0 && time.Since(m[0].Time.Time) < time.Second; { // so that the times would differ
				time.Sleep(10 * time.Millisecond)
			}
			again(200, x.path, x.again)
			if now := c.job("matrix-ops"); now.ResourceVersion != first.ResourceVersion && !strings.Contains(x.name, "over json") {
				t.Errorf("the same manifest changed the job: %+v\n%+v", first, now)
			}
			if now := c.login(c.job("matrix-ops"), user, password); now.ResourceVersion != secret.ResourceVersion {
				t.Error("the same manifest changed the Secret")
			}
			changed := strings.ReplaceAll(x.again, password, other)
			again(200, dry(x.path), changed)
			c.login(c.job("matrix-ops"), user, password)
			again(200, x.path, changed)
			now := c.job("matrix-ops")
			c.login(now, user, other)
			if now.UID != first.UID || now.Generation != 1 {
				t.Errorf("%+v", now)
			}
			c.ask(200, "GET", gpuJobsPath, "")
			c.ask(200, "GET", gpuJobsPath, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
			c.clean()
		})
	}
}

// What is wrong is said without the password, and then nothing is written.
func TestGpuJobPasswordsInErrors(t *testing.T) {
	c := startLogins(t, "s3cret", "73577777")
	const login = `"username":"me","password":"s3cret"`
	post := func(code int, says, body string, query ...string) {
		t.Helper()
		if got := c.ask(code, "POST", gpuJobsPath+strings.Join(query, ""), body); !strings.Contains(got, says) {
			t.Errorf("%s, want %s", got, says)
		}
	}
	object := func(spec string) string { return `{"metadata":{"name":"j"},"spec":{` + spec + `}}` }
	post(422, "spec.loginSecret: Forbidden", object(`"runScripts":["a"],"loginSecret":"mine",`+login))
	post(422, "spec.username: Required", object(`"runScripts":["a"],"password":"s3cret"`))
	post(422, "spec.runScripts: Required", object(login))
	post(422, "spec.password: Invalid", object(`"runScripts":["a"],"username":"me","password":"s3cret\n"`))
	post(400, "spec.password: expected a string: write it in quotes", object(`"runScripts":["a"],"username":"me","password":73577777`))
	post(400, "spec.password: expected a string: write it in quotes", object(`"runScripts":["a"],"username":"me","password":["s3cret"]`))
	post(400, "unknown field", object(`"runScripts":[],"unheard":1,`+login), "?fieldValidation=Strict")
	post(400, "", object(`"runScripts":"a",`+login))
	c.ask(404, "POST", "/apis/minik8s.io/v1/namespaces/nowhere/gpujobs", object(`"runScripts":["a"],`+login))
	c.clean()
	if _, body := c.do(c.root(), "GET", secretsPath, ""); strings.Contains(body, "gpujob-") {
		t.Error(body)
	}
}

// The Secret is the job's: somebody else's of its name is left alone, one of an earlier job of the name is taken over, and
// what comes by another way than a manifest is blanked, too.
func TestGpuJobLoginSecret(t *testing.T) {
	c := startLogins(t, "s3cret", "0ther", "sh0wn")
	const object = `{"apiVersion":"minik8s.io/v1","kind":"GpuJob","metadata":{"name":"j"},"spec":{"runScripts":["a"],"username":"me","password":"s3cret"}}`
	c.ask(201, "POST", secretsPath, `{"metadata":{"name":"gpujob-j-login"},"stringData":{"a":"b"}}`)
	if got := c.ask(409, "POST", gpuJobsPath, object); !strings.Contains(got, "secret default/gpujob-j-login, which is somebody else's") {
		t.Error(got)
	}
	c.ask(404, "GET", gpuJobsPath+"/j", "")
	c.ask(200, "DELETE", secretsPath+"/gpujob-j-login", "")
	c.ask(201, "POST", gpuJobsPath, object)
	c.login(c.job("j"), "me", "s3cret")
	c.ask(200, "DELETE", gpuJobsPath+"/j", "")
	c.ask(201, "POST", gpuJobsPath, strings.Replace(object, "s3cret", "0ther", 1)) // nobody has collected the Secret meanwhile
	job := c.job("j")
	secret := c.login(job, "me", "0ther")
	// Without a login the Secret stays, and the job goes on to name it.
	c.ask(200, "PUT", gpuJobsPath+"/j", `{"metadata":{"name":"j"},"spec":{"runScripts":["a"],"cleanup":"Never"}}`)
	if now := c.login(c.job("j"), "me", "0ther"); now.ResourceVersion != secret.ResourceVersion {
		t.Error("the Secret was changed")
	}
	c.ask(422, "PUT", gpuJobsPath+"/j", `{"metadata":{"name":"j"},"spec":{"runScripts":["b"]}}`)
	// The annotation alone, to the object and to its status; with the word written otherwise; one that is no manifest.
	for _, x := range []struct{ path, text string }{
		{"", `{\"spec\":{\"Password\":\"sh0wn\",\"runScripts\":[\"a\"]}}`}, {"/status", `{\"spec\":{\"password\":\"sh0wn\"}}`}, {"", `password: sh0wn`},
	} {
		c.ask(200, "PATCH", gpuJobsPath+"/j"+x.path, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"`+x.text+`"}}}`, "Content-Type", "application/merge-patch+json")
	}
	// A generated name has its Secret, too.
	var made minik8s.GpuJob
	if err := json.Unmarshal([]byte(c.ask(201, "POST", gpuJobsPath, strings.Replace(object, `"name":"j"`, `"generateName":"g-"`, 1))), &made); err != nil {
		t.Fatal(err)
	}
	c.login(c.job(made.Name), "me", "s3cret")
	// A Secret that cannot be changed keeps what it has.
	c.ask(200, "PATCH", secretsPath+"/gpujob-j-login", `{"immutable":true}`, "Content-Type", "application/merge-patch+json")
	if got := c.ask(422, "PATCH", gpuJobsPath+"/j", `{"spec":{"username":"me","password":"s3cret"}}`, "Content-Type", "application/merge-patch+json"); !strings.Contains(got, "gpujob-j-login") {
		t.Error(got)
	}
	c.clean()
}

// A job that began with another login gets no new one.
func TestGpuJobLoginComesLate(t *testing.T) {
	c := startLogins(t, "s3cret")
	c.ask(201, "POST", gpuJobsPath, `{"metadata":{"name":"j"},"spec":{"runScripts":["a"]}}`)
	if got := c.ask(422, "PATCH", gpuJobsPath+"/j", `{"spec":{"username":"me","password":"s3cret"}}`, "Content-Type", "application/merge-patch+json"); !strings.Contains(got, "spec: Forbidden: is immutable") {
		t.Error(got)
	}
	c.ask(404, "GET", secretsPath+"/gpujob-j-login", "")
	c.clean()
}

// Nobody manages a field that is not stored, so nobody conflicts over it.
func TestGpuJobLoginHasNoManager(t *testing.T) {
	c := startLogins(t, "s3cret", "0ther")
	const apply, head = "application/apply-patch+yaml", `{"apiVersion":"minik8s.io/v1","kind":"GpuJob","metadata":{"name":"j"},"spec":{`
	c.ask(201, "PATCH", gpuJobsPath+"/j?fieldManager=me", head+`"runScripts":["a"],"username":"me","password":"s3cret"}}`, "Content-Type", apply)
	c.ask(200, "PATCH", gpuJobsPath+"/j?fieldManager=you", head+`"username":"me","password":"0ther"}}`, "Content-Type", apply)
	job := c.job("j")
	c.login(job, "me", "0ther")
	for _, m := range job.ManagedFields {
		if strings.Contains(m.FieldsV1.GetRawString(), "f:password") || strings.Contains(m.FieldsV1.GetRawString(), "f:username") {
			t.Errorf("%s manages a field that is not there: %s", m.Manager, m.FieldsV1.GetRawString())
		}
	}
}

// The kinds over HTTP: every mistake at once, tables, what the part that runs the jobs may do, and what others may not.
func TestGpuJobsOverHTTP(t *testing.T) {
	c := startLogins(t)
	if got := c.ask(422, "POST", gpuJobsPath, `{"metadata":{"name":"bad"},"spec":{"outputFile":"../x","gpus":1,"gpusPerNode":1,"timeLimit":"0s","sbatch":["--wrap=x","-Jx"]}}`); !strings.Contains(got, "spec.runScripts: Required") ||
		!strings.Contains(got, "spec.outputFile") || !strings.Contains(got, "spec.gpus: Forbidden") || !strings.Contains(got, "spec.timeLimit") || !strings.Contains(got, "spec.sbatch[0]") || !strings.Contains(got, "spec.sbatch[1]") {
		t.Error(got)
	}
	c.ask(422, "POST", "/apis/minik8s.io/v1/namespaces/default/slurmclusters", `{"metadata":{"name":"bad"},"spec":{"host":"a b","pollSeconds":1}}`)
	c.ask(201, "POST", "/apis/minik8s.io/v1/namespaces/default/slurmclusters", `{"metadata":{"name":"hpc"},"spec":{"host":"login.example","setup":["source setup.sh"],"defaults":{"partition":"p1"},"hostKeys":["SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"]}}`)
	// A dry run shows the script, with what the cluster adds; it is not kept.
	if got := c.ask(201, "POST", gpuJobsPath+"?dryRun=All", `{"metadata":{"name":"j"},"spec":{"runScripts":["./a --it"]}}`); !strings.Contains(got, `"script":"### batch.sh`) ||
		!strings.Contains(got, "./a --it") || !strings.Contains(got, "source setup.sh") || !strings.Contains(got, "--partition=p1") {
		t.Error(got)
	}
	c.ask(201, "POST", gpuJobsPath, `{"metadata":{"name":"j"},"spec":{"runScripts":["./a"],"dependsOn":[{"name":"before"}]},"status":{"state":"COMPLETED"}}`)
	j := c.job("j")
	if j.Status.State != "" || j.Status.Script != "" || j.Spec.Cleanup != "OnSuccess" || j.Spec.CompileOn != "Login" || j.Spec.DependsOn[0].When != "afterok" || j.Generation != 1 {
		t.Errorf("%+v", j)
	}
	const changed = `{"metadata":{"name":"j"},"spec":{"runScripts":["./a"],"dependsOn":[{"name":"before"}],"cleanup":"Never"}}`
	if got := c.ask(200, "PUT", gpuJobsPath+"/j?dryRun=All", changed); !strings.Contains(got, "### batch.sh") {
		t.Error(got)
	}
	c.ask(200, "PUT", gpuJobsPath+"/j", changed)
	if got := c.ask(200, "GET", gpuJobsPath+"/j", ""); strings.Contains(got, "batch.sh") {
		t.Error(got)
	}
	// A second seed system's manifest under the path of batch Jobs is told where it belongs.
	manifest, err := os.ReadFile("../../testdata/dialects/a-gpujob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.ask(400, "POST", "/apis/batch/v1/namespaces/default/jobs", string(manifest)); !strings.Contains(got, "it goes to /apis/minik8s.io/v1/namespaces/NAMESPACE/gpujobs") {
		t.Error(got)
	}
	c.ask(201, "POST", gpuJobsPath, string(manifest))

	part, node, alice := c.user("system:gpu-controller"), c.user("system:node:n1", "system:nodes"), c.user("alice")
	status := `{"status":{"state":"RUNNING","jobID":"17","nodeList":"gpu01","conditions":[{"type":"Submitted","status":"True","reason":"Accepted","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	const merge = "application/merge-patch+json"
	for _, x := range []struct {
		who          *http.Client
		method, path string
		body         string
		want         int
	}{
		{part, "GET", "/apis/minik8s.io/v1/gpujobs", "", 200},
		{part, "GET", "/apis/minik8s.io/v1/slurmclusters", "", 200},
		{part, "PATCH", gpuJobsPath + "/j/status", status, 200},
		{part, "PATCH", gpuJobsPath + "/j/status", `{"status":{"restarts":-1}}`, 422},
		{part, "PATCH", gpuJobsPath + "/j", `{"metadata":{"finalizers":["minik8s.io/gpu-job"]}}`, 200},
		{part, "PATCH", gpuJobsPath + "/j", `{"metadata":{"finalizers":null}}`, 200},
		{part, "PATCH", "/apis/minik8s.io/v1/namespaces/default/slurmclusters/hpc/status", `{"status":{"conditions":[{"type":"Connected","status":"True","reason":"ConnectionStands","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, 200},
		{part, "PATCH", "/apis/minik8s.io/v1/namespaces/default/slurmclusters/hpc", `{"spec":{"hostKeys":null}}`, 403},
		{part, "GET", secretsPath + "/gone", "", 404},
		{part, "GET", secretsPath, "", 403},
		{part, "POST", secretsPath, `{"metadata":{"name":"x"}}`, 403},
		{part, "POST", gpuJobsPath, `{"metadata":{"name":"x"},"spec":{"runScripts":["a"]}}`, 403},
		{part, "DELETE", gpuJobsPath + "/j", "", 403},
		{node, "GET", gpuJobsPath, "", 403},
		{node, "GET", "/apis/minik8s.io/v1/slurmclusters", "", 403},
		{alice, "GET", gpuJobsPath + "/j", "", 403},
		{alice, "GET", gpuJobsPath + "/j/files", "", 403},
		{alice, "GET", gpuJobsPath + "/j/log", "", 403},
		{alice, "PUT", gpuJobsPath + "/j/sources", "", 403},
		{c.root(), "POST", gpuJobsPath + "/j/sources", "", 405},
		{c.root(), "PUT", gpuJobsPath + "/j/log", "", 405},
	} {
		if code, body := c.do(x.who, x.method, x.path, x.body, "Content-Type", merge); code != x.want {
			t.Errorf("%s %s: %d, want %d: %s", x.method, x.path, code, x.want, body)
		}
	}
	var table metav1.Table
	if err := json.Unmarshal([]byte(c.ask(200, "GET", gpuJobsPath+"/j", "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")), &table); err != nil || len(table.Rows) != 1 ||
		fmt.Sprint(table.Rows[0].Cells[:5]) != "[j RUNNING 17 <none> gpu01]" {
		t.Errorf("%+v %v", table, err)
	}
	if got := c.ask(200, "GET", "/apis/minik8s.io/v1", ""); !strings.Contains(got, `"gpujobs/sources"`) || !strings.Contains(got, `"slurmclusters/status"`) {
		t.Error(got)
	}
	if got := c.ask(200, "GET", "/openapi/v3/apis/minik8s.io/v1", ""); !strings.Contains(got, "Lines of shell that make the program") || !strings.Contains(got, "nothing is sent to the host") {
		t.Error("no schema")
	}
}
