package gpu

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/gpu/results"
)

// A master's sweeper removes what belongs to no job, also what is there from before, and nothing that is coming.
func TestSweeper(t *testing.T) {
	c := ct.New(t)
	dir := t.TempDir()
	store := results.New(dir)
	uids := map[string]string{}
	for _, name := range []string{"collecting", "here", "elsewhere", "deleted"} {
		j := ct.Create(c, &minik8s.GpuJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: minik8s.GpuJobSpec{RunScripts: []string{"true"}}})
		uids[name] = string(j.UID)
		if master := map[string]string{"here": "me", "elsewhere": "other"}[name]; master != "" {
			j = j.DeepCopy()
			j.Status.Results = &minik8s.GpuJobResults{Master: master}
			if _, err := c.Admin().Update(t.Context(), j, client.WriteOptions{Subresource: api.StatusSubresource}); err != nil {
				t.Fatal(err)
			}
		}
	}
	uids["from before"] = "00000000-0000-0000-0000-000000000001"
	open := map[string]*results.Incoming{}
	for name, uid := range uids {
		in, err := store.Incoming(t.Context(), uid)
		if err != nil {
			t.Fatal(err)
		}
		if name == "here" {
			if err := store.Complete(uid, nil, results.LeftOut{}); err != nil {
				t.Fatal(err)
			}
		}
		if name == "deleted" || name == "collecting" {
			open[name] = in
		} else {
			in.Close() //nolint:errcheck // of a test
		}
	}
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, uids[name]))
		return !errors.Is(err, fs.ErrNotExist)
	}
	gone := func(name string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); there(name); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s is still there", name)
			}
		}
	}
	c.Start(NewSweeper(c.As(ControllerName), Config{Store: store, Master: "me", Log: slog.New(slog.DiscardHandler)}).Run)
	gone("from before")
	gone("elsewhere")
	if _, err := c.Admin().Delete(t.Context(), client.Key{Kind: api.GpuJobs, Namespace: "default", Name: "deleted"}, nil); err != nil {
		t.Fatal(err)
	}
	if !there("deleted") {
		t.Error("files that are coming are removed")
	}
	open["deleted"].Close() //nolint:errcheck // of a test
	gone("deleted")
	for _, name := range []string{"collecting", "here"} {
		if !there(name) {
			t.Errorf("%s is removed", name)
		}
	}
	open["collecting"].Close() //nolint:errcheck // of a test
}
