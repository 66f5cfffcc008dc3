package nodes

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"minik8s/internal/api"
	"minik8s/internal/apiserver/authentication"
	"minik8s/internal/registry"
)

// ImageHandler serves the images on a node, which are not API objects: /minik8s/v1/nodes/NODE/images.
type ImageHandler struct {
	*Handler
	Registry *registry.Registry
}

// imageVerbs are the rights that a method needs on nodes/images.
var imageVerbs = map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodDelete: "delete"}

// Images lists the images of the node in the path (GET), pulls ?ref= or imports an archive from the body (POST), or
// removes ?ref= (DELETE).
func (h *ImageHandler) Images(c echo.Context) error {
	req, node := c.Request(), c.Param("node")
	q := &registry.Request{User: authentication.User(c), Verb: imageVerbs[req.Method], Kind: api.Nodes, Sub: "images", Name: node}
	if _, err := h.Registry.Parent(req.Context(), q, node); err != nil {
		return err
	}
	if err := h.reachable(node); err != nil {
		return err
	}
	query := url.Values{}
	if ref := c.QueryParam("ref"); ref != "" {
		query.Set("ref", ref)
	}
	return h.relay(c.Response(), req, node, "/images", query)
}
