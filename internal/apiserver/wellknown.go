package apiserver

import (
	"net/http"
	"slices"
	"sort"

	"github.com/labstack/echo/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/apiserver/encoding"
)

// version serves /version.
func (s *Server) version(c echo.Context) error { return encoding.SendJSON(c, s.cfg.Version) }

// issuer serves OpenID Connect Discovery, from which others learn to check service account tokens.
func (s *Server) issuer(c echo.Context) error {
	name := s.tokens.Issuer()
	if name == "" {
		return echo.ErrNotFound
	}
	return encoding.SendJSON(c, map[string]any{"issuer": name, "jwks_uri": "https://" + s.cfg.Address + "/openid/v1/jwks",
		"response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"ES256"}})
}

func (s *Server) issuerKeys(c echo.Context) error {
	keys := s.tokens.KeySet()
	if keys == nil {
		return echo.ErrNotFound
	}
	return c.Blob(http.StatusOK, "application/jwk-set+json", keys)
}

func (s *Server) paths(c echo.Context) error {
	paths := []string{}
	for _, r := range s.echo.Routes() {
		if r.Method == http.MethodGet && !slices.Contains(paths, r.Path) {
			paths = append(paths, r.Path)
		}
	}
	sort.Strings(paths)
	return encoding.SendJSON(c, metav1.RootPaths{Paths: paths})
}
