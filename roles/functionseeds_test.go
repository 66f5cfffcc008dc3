package roles_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/function/plan"
)

// desk is a directory as the second seed system's documents have it, where their commands are typed.
func (c *caller) desk() func(line string, env ...string) (string, error) {
	c.t.Helper()
	dir := c.t.TempDir()
	scripts, err := filepath.Abs("../deploy/functions")
	if err != nil {
		c.t.Fatal(err)
	}
	code := filepath.Join(dir, "examples/dash/func")
	if err := os.MkdirAll(code, 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Symlink(scripts, filepath.Join(dir, "script")); err != nil {
		c.t.Fatal(err)
	}
	if err := os.CopyFS(code, os.DirFS("../testdata/functions")); err != nil {
		c.t.Fatal(err)
	}
	return func(line string, env ...string) (string, error) {
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
}

// The second seed system's commands, word for word, with its files: the API is where they say it is, 192.168.1.10:8080.
func TestFunctionScripts(t *testing.T) {
	c := newFunctions(t, 18087)
	if out, err := exec.Command("ip", "address", "add", "192.168.1.10/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("ip", "address", "del", "192.168.1.10/32", "dev", "lo").Run() }) //nolint:errcheck // the network goes with the test
	daemon, err := built()
	if err != nil {
		t.Fatal(err)
	}
	proxy := exec.Command(daemon, "ctl", "--data-dir", c.dir, "proxy", "--address=192.168.1.10", "--port=8080", `--accept-hosts=^192\.168\.1\.10$`)
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		proxy.Process.Kill() //nolint:errcheck // it may have ended
		proxy.Wait()         //nolint:errcheck // it was killed
	})
	c.eventually("the API where the scripts look for it", func() bool {
		conn, err := net.Dial("tcp", "192.168.1.10:8080")
		if err == nil {
			conn.Close() //nolint:errcheck // nothing was sent
		}
		return err == nil
	})
	sh := c.desk()
	at := []string{"API_SERVER=192.168.1.10", "PORT=8080"}
	says := func(line, want string) {
		t.Helper()
		if out, err := sh(line, at...); err != nil || out != want {
			t.Errorf("%s: %q, %v", line, out, err)
		}
	}
	says("script/uploader.sh examples/dash/func/is_hello.env", "function is_hello uploaded")
	says("script/uploader.sh examples/dash/func/append_world.env", "function append_world uploaded")
	says("script/uploader.sh examples/dash/func/append_branch.env", "function append_branch uploaded")
	says("sh script/call.sh is_hello hi", "hi world")
	says("sh script/call.sh is_hello hello", "hello world")
	says("sh script/updater.sh examples/dash/func/is_hello_modify.env", "function is_hello updated")
	c.eventually("the other branch", func() bool { out, _ := sh("sh script/call.sh is_hello hi", at...); return out == "hi branch" })
	says("sh script/call.sh is_hello hello", "hello world")
	if out, err := sh("script/uploader.sh examples/dash/func/is_hello.env", at...); err == nil || !strings.Contains(out, "already exists") {
		t.Errorf("a second time: %q, %v", out, err)
	}
	if out := c.ctl("get", "func"); !strings.Contains(out, "append_branch") {
		t.Errorf("get func: %s", out)
	}
	c.ctl("del", "func", "append_branch")
	if out, err := sh("sh script/call.sh append_branch hi", at...); err == nil || !strings.Contains(out, "not found") {
		t.Errorf("after its deletion: %q, %v", out, err)
	}

	// What the seed's instances say to one another: a call that has its id, and is made once; and a result from elsewhere.
	c.add("count", "n = 0\ndef run(arg):\n    global n\n    n += 1\n    return arg + ' ' + str(n)\n", nil)
	put := func(path, body string) string {
		out, _ := sh("curl -sS -X PUT --data-binary '"+body+"' http://$API_SERVER:$PORT/api/funcs/"+path, at...) //nolint:errcheck // what it says counts
		return out
	}
	for range 3 {
		if out := put("count/call-mine", "x"); out != "call-mine" {
			t.Fatalf("PUT: %q", out)
		}
	}
	c.eventually("its result", func() bool { out, _ := sh("script/get-result.sh call-mine", at...); return out == "x 1" })
	if out := put("count/call-mine", "y"); !strings.Contains(out, "with its own argument") {
		t.Errorf("another call by its id: %q", out)
	}
	put("count/call-next", "z")
	c.eventually("its result", func() bool { out, _ := sh("script/get-result.sh call-next", at...); return out == "z 2" })
	c.add("slow", "import time\ndef run(arg):\n    time.sleep(30)\n    return arg\n", nil)
	put("slow/call-slow", "x")
	put("RETURN/call-slow", "from elsewhere")
	says("script/get-result.sh call-slow", "from elsewhere")
	if out := put("RETURN/call-slow", "again"); !strings.Contains(out, "has its result already") {
		t.Errorf("a second result: %q", out)
	}
}

// What the scripts send is what it says, and a token is in nobody's list of processes.
func TestFunctionScriptsAreCareful(t *testing.T) {
	scripts, err := filepath.Abs("../deploy/functions")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("curl", "#!/bin/sh\necho \"args: $*\"\nwhile [ $# -gt 0 ]; do\n\tif [ \"$1\" = -K ]; then echo \"config: $(cat \"$2\")\"; fi\n\tshift\ndone\ncat\n")
	write("token", "sesame\n")
	write("f.py", "def run(arg): return arg\n")
	write("bad.env", "NAME='a\"b'\nMAIN=f.py\n")
	write("worse.env", "NAME=a\nMAIN=f.py\nLEFT_BRANCH='x\",\"spec\":{\"image\":\"y'\n")
	write("count.env", "NAME=a\nMAIN=f.py\nMAX_INSTANCE_NUM='$(id)'\n")
	sh := func(line string) (string, error) {
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TOKEN_FILE=token", "S="+scripts)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := sh("sh $S/call.sh hello you")
	args, rest, _ := strings.Cut(out, "\n")
	if err != nil || strings.Contains(args, "sesame") || !strings.Contains(rest, `config: header = "Authorization: Bearer sesame"`) || !strings.HasSuffix(strings.TrimSpace(rest), "you") {
		t.Errorf("%s, %v", out, err)
	}
	for line, says := range map[string]string{"$S/call.sh ../../api/v1 x": "NAME: expected letters", "$S/get-result.sh 'a?b'": "ID: expected letters", "$S/uploader.sh bad.env": "NAME: expected letters",
		"$S/uploader.sh worse.env": "LEFT_BRANCH: expected letters", "$S/updater.sh count.env": "MAX_INSTANCE_NUM: expected a number"} {
		if out, err := sh("sh " + line); err == nil || !strings.Contains(out, says) || strings.Contains(out, "args: ") {
			t.Errorf("%s: %s, %v", line, out, err)
		}
	}
}

// A function's own address: from the node and from a pod, by address and by name, from zero, and with its limits.
func TestFunctionAddresses(t *testing.T) {
	c := newFunctions(t, 18088)
	post := func(host, body string) (int, string) {
		resp, err := http.Post("http://"+host+"/", "text/plain", strings.NewReader(body))
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()          //nolint:errcheck // it was only read
		text, _ := io.ReadAll(resp.Body) //nolint:errcheck // what came counts
		return resp.StatusCode, string(text)
	}
	open := func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:8082")
		if err == nil {
			conn.Close() //nolint:errcheck // nothing was sent
		}
		return err == nil
	}
	if open() {
		t.Error("the port of addresses is open, and no function has one")
	}
	address := func(at string) func(*minik8s.FunctionSpec) {
		return func(s *minik8s.FunctionSpec) { s.Address, s.IdleSeconds = at, 2 }
	}
	c.add("says_hello", "def run(arg):\n    return 'hello ' + arg\n", address("10.7.0.3"))
	function := func(name string) *minik8s.Function {
		f, err := client.Get[*minik8s.Function](t.Context(), c.api, client.Key{Kind: api.Functions, Namespace: "default", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	c.eventually("an address", func() bool { return function("says_hello").Status.Address == "10.7.0.3" })
	c.eventually("an answer there", func() bool { status, text := post("10.7.0.3", "you"); return status == 200 && text == "hello you" })
	c.eventually("none when nobody calls", func() bool { return len(c.instances("says-hello--"+tail("says_hello"))) == 0 })
	if status, text := post("10.7.0.3", "zero"); status != 200 || text != "hello zero" {
		t.Errorf("from zero: %d %q", status, text)
	}
	c.create(c.api, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "asks"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "busybox", ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sleep", "3600"}}}}})
	c.running(c.api, "asks")
	for _, host := range []string{"10.7.0.3", "func-says-hello--" + tail("says_hello"), "func-says-hello--" + tail("says_hello") + ".default.svc.cluster.local"} {
		if out := c.ctl("exec", "asks", "--", "wget", "-q", "-O-", "--post-data=pod", "http://"+host+"/"); out != "hello pod" {
			t.Errorf("from a pod at %s: %q", host, out)
		}
	}
	// The same address cannot be another's; it can once the first has let it go.
	c.add("second", "def run(arg):\n    return 'second ' + arg\n", address("10.7.0.3"))
	c.eventually("a refusal", func() bool {
		for _, x := range function("second").Status.Conditions {
			if x.Type == minik8s.FunctionAddressed && x.Reason == "Refused" && strings.Contains(x.Message, "10.7.0.3") {
				return true
			}
		}
		return false
	})
	c.ctl("func", "rm", "says_hello")
	c.eventually("it is another's", func() bool { status, text := post("10.7.0.3", "you"); return status == 200 && text == "second you" })
	// Any address; and none any more.
	patch := func(with string) {
		t.Helper()
		if _, err := c.api.Patch(t.Context(), client.Key{Kind: api.Functions, Namespace: "default", Name: "second"}, client.Patch{Type: types.MergePatchType, Data: []byte(with)}, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"spec":{"address":"Auto"}}`)
	c.eventually("it stays with Auto", func() bool { return function("second").Generation == function("second").Status.ObservedGeneration })
	if at := function("second").Status.Address; at != "10.7.0.3" {
		t.Errorf("with Auto it has %q", at)
	}
	patch(`{"spec":{"address":null}}`)
	c.eventually("the port is closed", func() bool { return !open() })
	if services, _, err := client.All[*corev1.Service](t.Context(), c.api, api.Services, client.ListOptions{Namespace: "default"}); err != nil || len(services) != 1 {
		t.Errorf("%d Services, %v", len(services), err)
	}
}

// tail is what the derived name of a function ends with.
func tail(name string) string { return plan.Derived(name)[len(plan.Derived(name))-6:] }
