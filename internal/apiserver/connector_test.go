package apiserver_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"minik8s/internal/aggregation"
	"minik8s/internal/apiserver"
)

// What a part answers may take as long as it likes to begin, such as a function's result: only reading it has a limit.
func TestAConnectorMayAnswerLate(t *testing.T) {
	const patience = 50 * time.Millisecond
	c := startWith(t, patience, talkers{}, func(cfg *apiserver.Config) {
		cfg.Connectors = map[string]aggregation.Connector{"functions/call": func(w http.ResponseWriter, _ *aggregation.Connected) error {
			time.Sleep(10 * patience) // the time is what is tested
			_, err := io.WriteString(w, "late")
			return err
		}}
	})
	const functions = "/apis/minik8s.io/v1/namespaces/default/functions"
	if code, said := c.do(c.root(), http.MethodPost, functions, `{"apiVersion":"minik8s.io/v1","kind":"Function","metadata":{"name":"f"},"spec":{"image":"x"}}`); code != http.StatusCreated {
		t.Fatal(code, said)
	}
	for name, h := range map[string]*http.Client{"the socket": c.root(), "TLS": c.user("admin", "system:masters")} {
		if code, said := c.do(h, http.MethodPost, functions+"/f/call", "{}"); code != http.StatusOK || said != "late" {
			t.Errorf("by %s: %d %q", name, code, said)
		}
	}
}
