package roles_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/slurm/slurmtest"
)

// TestSlurmLogin is about who is talked to: nobody whose key is not confirmed.
func TestSlurmLogin(t *testing.T) {
	x := newCentre(t, slurmtest.Options{})
	key := client.Key{Kind: api.SlurmClusters, Namespace: "default", Name: "centre"}
	cluster := func() *minik8s.SlurmCluster {
		c, err := client.Get[*minik8s.SlurmCluster](context.Background(), x.c, key)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	reason := func(want string) {
		t.Helper()
		x.eventually("connected: "+want, func() bool {
			c := apimeta.FindStatusCondition(cluster().Status.Conditions, minik8s.SlurmConnected)
			return c != nil && c.Reason == want
		})
	}
	patch := func(data string) {
		t.Helper()
		x.must(x.c.Patch(context.Background(), key, client.Patch{Type: types.MergePatchType, Data: []byte(data)}, client.WriteOptions{}))
	}
	known := x.slurm.HostKey
	patch(`{"spec":{"hostKeys":null}}`)
	x.submit("one", minik8s.GpuJobSpec{RunScripts: []string{"sleep 600"}})
	reason(minik8s.SlurmHostKeyUnknown)
	if k := cluster().Status.PresentedKeys; len(k) != 1 || k[0].Key != known {
		t.Errorf("it says that the host shows %v, and it shows %s", k, known)
	}
	fingerprint := cluster().Status.PresentedKeys[0].Fingerprint
	patch(fmt.Sprintf(`{"spec":{"hostKeys":[%q]}}`, fingerprint))
	x.state("one", "RUNNING")
	reason(minik8s.SlurmConnectionStands)

	x.slurm.NewHostKey()
	reason(minik8s.SlurmHostKeyChanged)
	patch(fmt.Sprintf(`{"spec":{"hostKeys":[%q]}}`, x.slurm.HostKey))
	reason(minik8s.SlurmConnectionStands)

	secret := client.Key{Kind: api.Secrets, Namespace: "default", Name: "login"}
	with := func(data string) {
		t.Helper()
		x.must(x.c.Patch(context.Background(), secret, client.Patch{Type: types.MergePatchType, Data: []byte(data)}, client.WriteOptions{}))
	}
	x.submit("two", minik8s.GpuJobSpec{LoginSecret: "other", RunScripts: []string{"true"}})
	x.eventually("a job says that its Secret is missing", func() bool {
		c := apimeta.FindStatusCondition(x.job("two").Status.Conditions, minik8s.GpuJobSubmitted)
		return c != nil && c.Reason == minik8s.SlurmSecretMissing && strings.Contains(c.Message, "default/other")
	})
	x.must(x.c.Create(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"},
		StringData: map[string]string{"username": x.slurm.User, "password": "wrong"}}, client.WriteOptions{}))
	x.eventually("a job says that its password is wrong", func() bool {
		c := apimeta.FindStatusCondition(x.job("two").Status.Conditions, minik8s.GpuJobSubmitted)
		return c != nil && c.Reason == minik8s.SlurmLoginRefused && !strings.Contains(c.Message, "wrong ")
	})
	secret.Name = "other"
	with(fmt.Sprintf(`{"stringData":{"password":%q}}`, x.slurm.Password))
	x.state("two", "COMPLETED")
}

// TestOneTimePasswords is a centre where a person has to answer: it opens the connection, which then stands.
func TestOneTimePasswords(t *testing.T) {
	x := newCentre(t, slurmtest.Options{OneTime: 3})
	codes := x.slurm.OneTimePasswords
	key := client.Key{Kind: api.SlurmClusters, Namespace: "default", Name: "centre"}
	x.must(x.c.Patch(context.Background(), key, client.Patch{Type: types.MergePatchType, Data: []byte(`{"spec":{"interactive":true,"loginSecret":null}}`)}, client.WriteOptions{}))
	waits := func(job string) {
		t.Helper()
		x.eventually("the job says that somebody has to log in", func() bool {
			c := apimeta.FindStatusCondition(x.job(job).Status.Conditions, minik8s.GpuJobSubmitted)
			return c != nil && c.Reason == minik8s.SlurmLoginNeeded && strings.Contains(c.Message, "ctl gpu login")
		})
	}
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	login := func(answer string) (string, error) {
		cmd := exec.Command(path, "ctl", "--data-dir", x.dir, "gpu", "login", "centre")
		cmd.Stdin = strings.NewReader(answer + "\n")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	x.submit("one", minik8s.GpuJobSpec{RunScripts: []string{"sleep 600"}})
	waits("one")
	if out, err := login("000000"); err == nil || !strings.Contains(out, "does not let") || strings.Contains(out, "000000") {
		t.Errorf("a wrong answer: %v %s", err, out)
	}
	if out, err := login(codes[0]); err != nil || !strings.Contains(out, "the connection stands") {
		t.Fatalf("%v %s", err, out)
	}
	x.state("one", "RUNNING")
	if out, err := login("nobody is asked"); err != nil || !strings.Contains(out, "the connection stands") {
		t.Errorf("a login where the connection stands: %v %s", err, out)
	}
	x.slurm.Cut()
	x.submit("two", minik8s.GpuJobSpec{RunScripts: []string{"echo two"}})
	waits("two")
	if out, err := login(codes[0]); err == nil {
		t.Errorf("a one-time password lets in twice: %s", out)
	}
	// Step by step, as without ctl.
	post := func(body string) string {
		out, err := exec.Command("curl", "-sS", "--unix-socket", filepath.Join(x.dir, "api.sock"), "-d", body,
			"http://x/apis/minik8s.io/v1/namespaces/default/slurmclusters/centre/login").CombinedOutput()
		if err != nil {
			t.Fatal(err, string(out))
		}
		return string(out)
	}
	var step minik8s.SlurmLoginStep
	if out := post(""); json.Unmarshal([]byte(out), &step) != nil || step.Connected || step.ID == "" || len(step.Prompts) != 1 {
		t.Fatalf("%s", out)
	}
	for _, c := range []struct{ body, says string }{
		{`{"id":"x","answers":["1"]}`, "no such login"},
		{`{"answers":"` + codes[2] + `"}`, "expected JSON"},
		{fmt.Sprintf(`{"id":%q,"answers":[%q]}`, step.ID, codes[1]), `"connected":true`},
		{fmt.Sprintf(`{"id":%q,"answers":[%q]}`, step.ID, codes[2]), "no such login"},
	} {
		if out := post(c.body); !strings.Contains(out, c.says) || strings.Contains(out, codes[2]) {
			t.Errorf("%s: %s", c.body, out)
		}
	}
	x.state("two", "COMPLETED")
	x.must(x.c.Delete(context.Background(), client.Key{Kind: api.GpuJobs, Namespace: "default", Name: "one"}, nil))
	x.eventually("the job is cancelled", func() bool { return x.job("one").Name == "" && !strings.Contains(x.slurm.Do("squeue -h -o %j"), "one") })
}
