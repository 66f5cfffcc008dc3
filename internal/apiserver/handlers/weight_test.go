package handlers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"minik8s/internal/api"
	"minik8s/internal/registry/registrytest"
)

// TestWeight: what takes more memory takes more of what there is.
func TestWeight(t *testing.T) {
	h := New(Config{Registry: registrytest.New(t)})
	for _, x := range []struct {
		verb   string
		length int64
		want   int64
	}{{"get", 0, 1}, {"create", 1000, 1}, {"create", maxBody, 49}, {"patch", -1, 49}, {"update", 1 << 40, 49}, {"list", 0, 1}} {
		req := httptest.NewRequest(http.MethodPost, "/", nil).WithContext(context.Background())
		req.ContentLength = x.length
		r := &request{Context: echo.New().NewContext(req, nil), kind: api.ConfigMaps}
		if got := h.weight(r, route{verb: x.verb}); got != x.want {
			t.Errorf("%s of %d bytes: %d units, want %d", x.verb, x.length, got, x.want)
		}
	}
}
