package apiserver_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"minik8s/internal/apiserver/members"
	"minik8s/internal/bootstrap"
	"minik8s/internal/membership"
	"minik8s/internal/registry"
)

// secretKey is in the keys of the tests' cluster, sentKey is what it looks like in JSON, and secretData is in snapshots.
const secretKey, secretData = "-----the-key-of-the-CA-----", "all-secrets-in-one-file"

var sentKey = base64.StdEncoding.EncodeToString([]byte(secretKey))

// keeper implements members.Store; it counts what was changed.
type keeper struct {
	mu      sync.Mutex
	changed []string
	broken  bool // a snapshot ends before its end
}

func (k *keeper) did(what string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changed = append(k.changed, what)
}

func (k *keeper) Keys() (membership.Keys, error) {
	return membership.Keys{CAKey: []byte(secretKey), ServiceAccountKey: []byte(secretKey)}, nil
}

func (k *keeper) Admit(_ context.Context, r membership.Request, _ bool) ([]string, error) {
	k.did("admit " + r.Name)
	return []string{r.Address}, nil
}

func (k *keeper) Members(_ context.Context, here bool) (membership.List, error) {
	return membership.List{Revision: 7, Members: []membership.Member{{ID: "a1", Name: map[bool]string{true: "here", false: "asked"}[here]}}}, nil
}

func (k *keeper) Remove(_ context.Context, member string, _ bool) error {
	k.did("remove " + member)
	return nil
}

func (k *keeper) Snapshot(context.Context) (members.Snapshot, error) {
	return members.Snapshot{Revision: 7, Size: int64(len(secretData)), Content: copied{k.broken}}, nil
}

func (k *keeper) Settings(context.Context) (membership.Shared, error) {
	return membership.Shared{"pod-network": "vxlan"}, nil
}

type copied struct{ broken bool }

func (c copied) WriteTo(w io.Writer) (int64, error) {
	if c.broken {
		_, err := io.WriteString(w, secretData[:5])
		return 5, errors.Join(err, io.ErrUnexpectedEOF)
	}
	n, err := io.WriteString(w, secretData)
	return int64(n), err
}

func (copied) Close() error { return nil }

// TestMasters asks for all that only masters and administrators may have, as everybody. Whoever may not gets nothing of
// it and changes nothing; and no key, snapshot or token is in the log.
func TestMasters(t *testing.T) {
	c := start(t)
	root := c.root()
	if code, b := c.do(root, "POST", "/api/v1/namespaces/default/serviceaccounts", `{"metadata":{"name":"there"}}`); code != 201 {
		t.Fatal(code, b)
	}
	code, body := c.do(root, "POST", robots+"/there/token", `{"spec":{}}`)
	var made struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(body), &made); err != nil || code != 201 {
		t.Fatal(code, body, err)
	}
	joining := c.storeToken(bootstrap.Options{Groups: []string{bootstrap.GroupMasters}, Expires: time.Now().Add(time.Hour)})
	late := c.storeToken(bootstrap.Options{Groups: []string{bootstrap.GroupMasters}, Expires: time.Now().Add(-time.Minute)})
	worker := c.joinToken()
	bearer := func(s string) []string { return []string{"Authorization", "Bearer " + s} }
	const admit = `{"name":"m2","address":"10.0.0.2:2380"}`
	doors := []struct {
		method, path, body string
		code               int // for who may
		has                string
	}{
		{"POST", membership.KeysPath, "{}", 200, sentKey},
		{"GET", membership.Path, "", 200, "asked"},
		{"GET", membership.Path + "?here=true", "", 200, `"name":"here"`},
		{"POST", membership.Path, admit, 200, "10.0.0.2:2380"},
		{"DELETE", membership.Path + "/m3", "", 200, "Success"},
		{"GET", membership.SnapshotPath, "", 200, secretData},
		{"GET", membership.SettingsPath, "", 200, "vxlan"},
		// There is no such door, for nobody.
		{"GET", membership.KeysPath, "", 405, ""},
		{"PUT", membership.KeysPath, "{}", 405, ""},
		{"POST", membership.SnapshotPath, "{}", 405, ""},
		{"POST", membership.Path, `{"name":"M 2","address":"10.0.0.2:2380"}`, 400, "name"},
		{"POST", membership.Path, `{"name":"m2","address":"10.0.0.2"}`, 400, "HOST:PORT"},
		{"POST", membership.Path, `{"name":"m2","adress":"10.0.0.2:1"}`, 400, "adress"},
	}
	all := func(string) bool { return true }
	none := func(string) bool { return false }
	keys := func(path string) bool { return path == membership.KeysPath }
	settings := func(path string) bool { return path == membership.SettingsPath }
	for _, who := range []struct {
		name    string
		client  *http.Client
		headers []string
		refused int
		may     func(path string) bool
	}{
		{"root on the socket", root, nil, 0, all},
		{"a master", c.user("admin", registry.GroupMasters), nil, 0, all},
		{"a machine that joins as a master", c.user(""), bearer(joining.Bearer()), 403, keys},
		{"with a token for masters that has expired", c.user(""), bearer(late.Bearer()), 401, none},
		{"a machine that joins as a worker", c.user(""), bearer(worker.Bearer()), 403, none},
		{"a worker", c.user("system:node:n1", registry.GroupNodes), nil, 403, settings},
		{"a service account", c.user(""), bearer(made.Status.Token), 403, none},
		{"a user", c.user("alice"), nil, 403, none},
		{"a part", c.user("system:scheduler"), nil, 403, none},
		{"a member of etcd", c.user(membership.User), nil, 403, none},
		{"a user as a master", c.user("alice"), []string{"Impersonate-User", "bob", "Impersonate-Group", registry.GroupMasters}, 403, none},
		{"nobody", c.user(""), nil, 401, none},
	} {
		for _, d := range doors {
			c.masters.changed = nil
			code, body := c.do(who.client, d.method, d.path, d.body, who.headers...)
			if who.may(strings.SplitN(d.path, "?", 2)[0]) {
				if code != d.code || !strings.Contains(body, d.has) {
					t.Errorf("%s: %s %s: %d %s", who.name, d.method, d.path, code, body)
				}
				continue
			}
			if code != who.refused && code != d.code || code < 400 || strings.Contains(body, sentKey) || strings.Contains(body, secretData) || len(c.masters.changed) > 0 {
				t.Errorf("%s: %s %s: %d %s, changed: %v", who.name, d.method, d.path, code, body, c.masters.changed)
			}
		}
	}
	c.masters.broken = true
	if resp, err := root.Get("http://minik8s" + membership.SnapshotPath); err == nil {
		got, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); err == nil {
			t.Errorf("a part of a snapshot, %q, looks like a whole one", got)
		}
	}
	for _, secret := range []string{secretKey, sentKey, secretData[:5], joining.Secret, worker.Secret, made.Status.Token} {
		if strings.Contains(c.said.String(), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}

// notes is a log that may be read while it is written.
type notes struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.String()
}
