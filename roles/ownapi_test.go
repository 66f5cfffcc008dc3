package roles

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"

	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// A part that asks this master's API over root's socket has its own rights there, not root's.
func TestOwnAPI(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "api.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	as := ""
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		as = r.Header.Get("Impersonate-User")
		json.NewEncoder(w).Encode(v1beta1.PodMetricsList{Items: make([]v1beta1.PodMetrics, 2)}) //nolint:errcheck // the client would say
	})}
	go srv.Serve(l)   //nolint:errcheck // it is closed
	defer srv.Close() //nolint:errcheck // of a test
	var list v1beta1.PodMetricsList
	if err := (&ownAPI{socket: socket, part: "podautoscaler-controller"}).Get(t.Context(), "/apis/metrics.k8s.io/v1beta1/pods", url.Values{}, &list); err != nil {
		t.Fatal(err)
	}
	if as != "system:podautoscaler-controller" || len(list.Items) != 2 {
		t.Errorf("it asked as %q, and got %d items", as, len(list.Items))
	}
}
