package members

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"minik8s/internal/membership"
	"minik8s/internal/streaming"
)

// Store is what keeps the cluster's objects, as a group of members. Errors that a person can do something about are API
// errors.
type Store interface {
	Keys() (membership.Keys, error)
	// Admit has the leader admit a machine, or with here this master by itself.
	Admit(ctx context.Context, r membership.Request, here bool) ([]string, error)
	// Members are who the leader says they are; here as with Admit.
	Members(ctx context.Context, here bool) (membership.List, error)
	// Remove removes a member by its name or ID; here as with Admit.
	Remove(ctx context.Context, member string, here bool) error
	Snapshot(ctx context.Context) (Snapshot, error)
	// Settings are those of which the cluster has one value.
	Settings(ctx context.Context) (membership.Shared, error)
}

// Snapshot is a copy of the store.
type Snapshot struct {
	Revision, Size int64
	Content        interface {
		io.WriterTo
		io.Closer
	}
}

// Handler serves the paths. Who may use them was decided before.
type Handler struct {
	Store Store
	// WriteTimeout is how long a client may take to read a piece of a snapshot.
	WriteTimeout time.Duration
}

// maxBody bounds a request, in bytes.
const maxBody = 64 << 10

// Keys gives a machine that joins what a master signs with.
func (h *Handler) Keys(c echo.Context) error {
	keys, err := h.Store.Keys()
	if err != nil {
		return err
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, keys)
}

// Admit admits a machine as a member.
func (h *Handler) Admit(c echo.Context) error {
	var r membership.Request
	d := json.NewDecoder(io.LimitReader(c.Request().Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return apierrors.NewBadRequest("expected {\"name\": NAME, \"address\": \"HOST:PORT\", \"key\": the SHA-256 of the kubelet's public key}: " + err.Error())
	}
	if msg := validation.IsDNS1123Subdomain(r.Name); len(msg) > 0 {
		return apierrors.NewBadRequest("name: " + msg[0])
	}
	host, port, err := net.SplitHostPort(r.Address)
	if n, perr := strconv.Atoi(port); err != nil || perr != nil || host == "" || n < 1 || n > 65535 {
		return apierrors.NewBadRequest("address: expected HOST:PORT, where the other masters reach the new one's etcd")
	}
	members, err := h.Store.Admit(c.Request().Context(), r, here(c))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, membership.Admission{Members: members})
}

// List lists the members.
func (h *Handler) List(c echo.Context) error {
	members, err := h.Store.Members(c.Request().Context(), here(c))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, members)
}

func here(c echo.Context) bool { return c.QueryParam(membership.HereQuery) == "true" }

// Settings says which settings all machines share.
func (h *Handler) Settings(c echo.Context) error {
	shared, err := h.Store.Settings(c.Request().Context())
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, shared)
}

// Remove removes a member.
func (h *Handler) Remove(c echo.Context) error {
	if err := h.Store.Remove(c.Request().Context(), c.Param("member"), here(c)); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
}

// Snapshot sends a copy of the store, in the form of etcd's own snapshots.
func (h *Handler) Snapshot(c echo.Context) error {
	s, err := h.Store.Snapshot(c.Request().Context())
	if err != nil {
		return err
	}
	defer s.Content.Close() //nolint:errcheck // it was only read
	header := c.Response().Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Length", strconv.FormatInt(s.Size, 10))
	header.Set("Cache-Control", "no-store")
	header.Set(membership.RevisionHeader, strconv.FormatInt(s.Revision, 10))
	out := streaming.NewWriter(c.Response(), h.WriteTimeout)
	if _, err := s.Content.WriteTo(out); err != nil {
		panic(http.ErrAbortHandler) // part of it must not look like the whole
	}
	return nil
}
