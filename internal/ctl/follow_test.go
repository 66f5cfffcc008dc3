package ctl

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestFollowGoesOn: a watch that breaks goes on where it was; the command ends when the server refuses that.
func TestFollowGoesOn(t *testing.T) {
	object := func(name string, rv int) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default","resourceVersion":"%d"}}`, name, rv)
	}
	table := func(name string, rv int) string {
		return fmt.Sprintf(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"%d"},"columnDefinitions":[{"name":"Name","type":"string"}],"rows":[{"cells":[%q],"object":%s}]}`, rv, name, object(name, rv))
	}
	for form, item := range map[string]func(string, int) string{"name": object, "": table} {
		f := newFake(t)
		var watched []string
		f.routes["GET /api/v1/namespaces/default/configmaps"] = func(w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			if query.Get("watch") == "" {
				fmt.Fprint(w, table("a", 5))
				return
			}
			watched = append(watched, query.Get("resourceVersion"))
			send := func(typ, body string) {
				fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", typ, body)
				w.(http.Flusher).Flush()
			}
			begins := len(watched) == 1
			if begins && form == "name" {
				send("ADDED", object("a", 3))
				send("BOOKMARK", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}`)
			}
			switch len(watched) {
			case 1:
				send("MODIFIED", item("b", 6))
				panic(http.ErrAbortHandler) // the connection breaks
			case 2:
				send("ADDED", item("c", 7)) // and the server ends the watch
			default:
				fail(w, apierrors.NewResourceExpired("too old"))
			}
		}
		args := []string{"get", "cm", "-w"}
		if form != "" {
			args = append(args, "-o", form)
		}
		got := f.ctl("", args...)
		if got.code == 0 || !strings.Contains(got.text, "too old") {
			t.Errorf("%q: %+v", form, got)
		}
		if last := watched[len(watched)-2:]; last[0] != "6" || last[1] != "7" {
			t.Errorf("%q: watched from %q", form, watched)
		}
		for _, name := range []string{"a", "b", "c"} {
			if strings.Count(got.out, name+"\n") != 1 {
				t.Errorf("%q: %s is not printed once: %q", form, name, got.out)
			}
		}
	}
}
