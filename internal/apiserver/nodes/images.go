package nodes

import (
	"encoding/json"
	"strings"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/apiserver/authentication"
	"minik8s/internal/apiserver/encoding"
	"minik8s/internal/apiserver/flowcontrol"
	"minik8s/internal/registry"
)

// ImageHandler serves the images on a node, which are not API objects: /minik8s/v1/nodes/NODE/images.
type ImageHandler struct {
	*Handler
	Registry *registry.Registry
}

// images returns the images of the node in the path.
func (h *ImageHandler) images(c echo.Context, verb string) (Images, error) {
	node := c.Param("node")
	q := &registry.Request{User: authentication.User(c), Verb: verb, Kind: api.Nodes, Sub: "images", Name: node}
	if _, err := h.Registry.Parent(c.Request().Context(), q, node); err != nil {
		return nil, err
	}
	if h.Agents == nil {
		return nil, unreachable(node)
	}
	return h.Agents.Images(node)
}

type imageList struct {
	Items []Image `json:"items"`
}

// ListImages lists the node's images.
func (h *ImageHandler) ListImages(c echo.Context) error {
	images, err := h.images(c, "get")
	if err != nil {
		return err
	}
	items, err := images.List(c.Request().Context())
	if err != nil {
		return err
	}
	return encoding.SendJSON(c, imageList{Items: append([]Image{}, items...)})
}

// AddImage pulls ?ref=, with progress as lines of JSON, or imports an archive from the body.
func (h *ImageHandler) AddImage(c echo.Context) error {
	images, err := h.images(c, "create")
	if err != nil {
		return err
	}
	if ref := c.QueryParam("ref"); ref != "" {
		return h.pullImage(c, images, ref)
	}
	if ct := c.Request().Header.Get("Content-Type"); !strings.HasPrefix(ct, "application/x-tar") {
		return apierrors.NewBadRequest("to pull an image give ?ref=NAME; to import an archive send it with Content-Type: application/x-tar")
	}
	flowcontrol.NewWriter(c.Response(), h.WriteTimeout) // an import may take any time
	items, err := images.Import(c.Request().Context(), c.Request().Body)
	if err != nil {
		return apierrors.NewBadRequest("the archive cannot be imported: " + err.Error())
	}
	return encoding.SendJSON(c, imageList{Items: append([]Image{}, items...)})
}

// pullLine is one line of a pull's progress.
type pullLine struct {
	Ref   string `json:"ref"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Error string `json:"error,omitempty"`
}

func (h *ImageHandler) pullImage(c echo.Context, images Images, ref string) error {
	c.Response().Header().Set("Content-Type", encoding.JSONType)
	enc := json.NewEncoder(flowcontrol.NewWriter(c.Response(), h.WriteTimeout))
	last := pullLine{Ref: ref}
	err := images.Pull(c.Request().Context(), ref, func(done, total int64) {
		last.Done, last.Total = done, total
		enc.Encode(last) //nolint:errcheck // ctx ends when the client disconnects
	})
	if err != nil {
		if !c.Response().Committed {
			return apierrors.NewBadRequest(err.Error())
		}
		last.Error = err.Error()
	}
	return enc.Encode(last)
}

// RemoveImage removes ?ref=.
func (h *ImageHandler) RemoveImage(c echo.Context) error {
	images, err := h.images(c, "delete")
	if err != nil {
		return err
	}
	ref := c.QueryParam("ref")
	if ref == "" {
		return apierrors.NewBadRequest("ref: say which image to remove")
	}
	err = images.Remove(c.Request().Context(), ref)
	if apierrors.IsNotFound(err) {
		return err
	}
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return encoding.SendJSON(c, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
}
