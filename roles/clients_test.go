package roles_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program is one of others that speaks to the daemon.
type program struct {
	t    *testing.T
	path string
	with []string // arguments that each run has
}

// clientOf finds kubectl or helm; the test is skipped where there is none.
func (p *process) clientOf(name string, with ...string) *program {
	p.t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		p.t.Skip(name, " is not installed; make test-clients builds it")
	}
	home := p.t.TempDir() // what it keeps of its user is the test's
	for _, of := range []string{"HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"} {
		p.t.Setenv(of, home)
	}
	return &program{t: p.t, path: path, with: append(with, "--kubeconfig", filepath.Join(p.dir, "admin.kubeconfig"))}
}

// run wants what a run prints to have all of the words, and its end to be a success.
func (c *program) run(args string, words ...string) {
	c.t.Helper()
	if err := c.ends(args, words...); err != nil {
		c.t.Errorf("%s: %v", args, err)
	}
}

// fails wants it to be a failure.
func (c *program) fails(args string, words ...string) {
	c.t.Helper()
	if c.ends(args, words...) == nil {
		c.t.Errorf("%s did not fail", args)
	}
}

func (c *program) ends(args string, words ...string) error {
	c.t.Helper()
	out, err := says(c.t, c.path, append(strings.Fields(args), c.with...)...)
	for _, w := range words {
		if !strings.Contains(out, w) {
			c.t.Errorf("%s does not say %q:\n%s", args, w, out)
		}
	}
	if err != nil && len(words) == 0 {
		c.t.Log(out)
	}
	return err
}

// manifest writes a file.
func manifest(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func deployment(replicas, image, label string) string {
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {team: ` + label + `}}
spec:
  replicas: ` + replicas + `
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - {name: web, image: ` + image + `, imagePullPolicy: Never, command: [sleep, "100000"]}
`
}

// Stock kubectl applies on the client's side and on the server's, shows differences before, and says who else manages a field.
func TestClientApplies(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	p.up()
	k := p.clientOf("kubectl")
	one, two := manifest(t, "one.yaml", deployment("1", "busybox", "a")), manifest(t, "two.yaml", deployment("2", "busybox", "a"))

	if k.ends("diff --server-side -f "+one, "+  name: web") == nil {
		t.Error("what is not there does not differ")
	}
	k.run("apply --server-side -f "+one, "deployment.apps/web serverside-applied")
	k.run("rollout status deployment/web --timeout=60s", "successfully rolled out")
	k.run("diff --server-side -f " + one)
	k.run("apply --server-side -f "+one, "serverside-applied") // nothing changes
	k.run("get deployment web -o jsonpath={.metadata.generation}", "1")
	k.run("get deployment web -o yaml --show-managed-fields", "manager: kubectl", "operation: Apply", "f:replicas")
	if k.ends("diff --server-side -f "+two, "-  replicas: 1", "+  replicas: 2") == nil {
		t.Error("another number of replicas makes no difference")
	}
	k.fails("apply --server-side --field-manager=other -f "+two, `conflict with "kubectl"`, ".spec.replicas")
	k.run("apply --server-side --field-manager=other --force-conflicts -f "+two, "serverside-applied")
	k.run("rollout status deployment/web --timeout=60s", "successfully rolled out")
	k.fails("apply --server-side -f "+one, `conflict with "other"`)
	k.fails("apply --server-side --force-conflicts -f "+manifest(t, "bad.yaml", deployment("-1", "busybox", "a")), "spec.replicas: Invalid value")
	k.run("delete -f "+one+" --wait", "deleted")

	// As it was done before there was the server's side; and then by it.
	k.run("apply -f "+one, "deployment.apps/web created")
	k.run("apply -f "+one, "unchanged")
	if k.ends("diff -f "+two, "+  replicas: 2") == nil {
		t.Error("another number of replicas makes no difference")
	}
	k.run("apply -f "+two, "configured")
	k.run("apply --server-side -f "+two, "serverside-applied")
	k.run("apply --server-side -f "+manifest(t, "none.yaml", strings.Replace(deployment("2", "busybox", "a"), ", labels: {team: a}", "", 1)), "serverside-applied")
	k.run("get deployment web -o jsonpath=[{.metadata.labels}]", "[]") // a label that is applied no more goes
	k.run("set image deployment/web web=hello", "image updated")
	k.run("rollout undo deployment/web", "rolled back")
	k.run("rollout status deployment/web --timeout=60s", "successfully rolled out")
	k.run("rollout history deployment/web", "REVISION")
	k.run("scale deployment/web --replicas=3", "scaled")
	k.run("wait deployment/web --for=jsonpath={.status.readyReplicas}=3 --timeout=60s", "condition met")
	k.run("delete deployment web --wait", "deleted")
	k.run("auth can-i create deployments", "yes")
	k.run("explain deployment.spec.strategy.rollingUpdate", "maxSurge")
	k.run("api-resources --api-group=apps", "deployments", "Deployment")
	k.run("create deployment made --image=busybox --dry-run=server -o name", "deployment.apps/made")
}

// Helm installs a chart with a hook, upgrades it, goes back and removes it all.
func TestClientHelm(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	p.up()
	h, k := p.clientOf("helm"), p.clientOf("kubectl")
	chart, err := filepath.Abs("../testdata/clients/chart")
	if err != nil {
		t.Fatal(err)
	}
	h.run("lint "+chart, "0 chart(s) failed")
	h.run("install web "+chart+" --wait --timeout 90s", "STATUS: deployed", "REVISION: 1")
	page := "get --raw /api/v1/namespaces/default/services/web:http/proxy/"
	k.run(page, "first")
	h.run("list", "web", "deployed", "web-0.1.0")
	h.run("upgrade web "+chart+" --set text=second,replicas=2 --wait --timeout 90s", "REVISION: 2")
	k.run(page, "second")
	k.run("get deployment web -o jsonpath={.status.readyReplicas}", "2")
	k.run("get deployment web -o yaml --show-managed-fields", "manager: helm")
	h.fails("upgrade web "+chart+" --set replicas=-1", "spec.replicas")
	h.run("rollback web 1 --wait --timeout 90s", "success")
	k.run(page, "first")
	h.run("history web", "Rollback to 1")
	h.run("get manifest web", "kind: Deployment")
	h.run("uninstall web --wait", "uninstalled")
	k.run("get deployments,services -l app=web", "No resources")
	h.fails("status web", "not found")
}
