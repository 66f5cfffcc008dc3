package roles_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"minik8s/internal/client/remote"
)

// /metrics of a daemon has the numbers that dashboards for Kubernetes look for.
func TestMetricsNames(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	p.create(c, shell("one", forever))
	p.running(c, "one")
	api, err := remote.New(remote.Config{Socket: filepath.Join(p.dir, "api.sock")})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := api.Do(context.Background(), http.MethodGet, "/metrics", nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`workqueue_depth{name="deployment"} `,
		`workqueue_adds_total{name="namespace"} `,
		`workqueue_retries_total{name="job"} `,
		`workqueue_queue_duration_seconds_count{name="gc"} `,
		`workqueue_work_duration_seconds_bucket{name="replicaset",le="+Inf"} `,
		`scheduler_pending_pods{queue="active"} 0`,
		`scheduler_pending_pods{queue="backoff"} 0`,
		`scheduler_pending_pods{queue="unschedulable"} 0`,
		`scheduler_schedule_attempts_total{result="scheduled"} `,
		`scheduler_scheduling_attempt_duration_seconds_count{result="scheduled"} `,
		`minik8s_part_ready{part="leader"} 1`,
	} {
		if !strings.Contains(string(b), "\n"+want) {
			t.Errorf("nothing of %s", want)
		}
	}
}
