package server

import (
	"encoding/json"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/streaming"
)

// nodeImage is an image on this node.
type nodeImage struct {
	ID   string   `json:"id"`
	Tags []string `json:"tags"`
	Size int64    `json:"size"` // bytes
}

type imageList struct {
	Items []nodeImage `json:"items"`
}

func listOf(images []cri.Image) imageList {
	l := imageList{Items: make([]nodeImage, len(images))}
	for i, x := range images {
		l.Items[i] = nodeImage{ID: x.ID, Tags: x.Tags, Size: x.Size}
	}
	return l
}

func (s *Server) listImages(w http.ResponseWriter, req *http.Request, _ Pods) error {
	images, err := s.cfg.Runtime.ListImages(req.Context())
	if err != nil {
		return err
	}
	send(w, http.StatusOK, listOf(images))
	return nil
}

// addImage pulls ?ref=, with progress as lines of JSON, or imports an archive from the body.
func (s *Server) addImage(w http.ResponseWriter, req *http.Request, _ Pods) error {
	if ref := req.URL.Query().Get("ref"); ref != "" {
		return s.pullImage(w, req, ref)
	}
	if ct := req.Header.Get("Content-Type"); !strings.HasPrefix(ct, "application/x-tar") {
		return apierrors.NewBadRequest("to pull an image give ?ref=NAME; to import an archive send it with Content-Type: application/x-tar")
	}
	streaming.NewWriter(w, s.cfg.WriteTimeout) // an import may take any time
	images, err := s.cfg.Runtime.ImportImages(req.Context(), req.Body)
	s.cfg.ImagesChanged()
	if err != nil {
		return apierrors.NewBadRequest("the archive cannot be imported: " + err.Error())
	}
	send(w, http.StatusOK, listOf(images))
	return nil
}

// pullLine is one line of a pull's progress.
type pullLine struct {
	Ref   string `json:"ref"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Error string `json:"error,omitempty"`
}

func (s *Server) pullImage(w http.ResponseWriter, req *http.Request, ref string) error {
	w.Header().Set("Content-Type", "application/json")
	lines := json.NewEncoder(streaming.NewWriter(w, s.cfg.WriteTimeout))
	last, begun := pullLine{Ref: ref}, false
	_, err := s.cfg.Runtime.PullImage(req.Context(), ref, nil, func(p cri.Progress) {
		last.Done, last.Total, begun = p.Done, p.Total, true
		lines.Encode(last) //nolint:errcheck // ctx ends when the client disconnects
	})
	s.cfg.ImagesChanged()
	if err != nil {
		if !begun {
			return apierrors.NewBadRequest(err.Error())
		}
		last.Error = err.Error()
	}
	return ignore(lines.Encode(last))
}

// removeImage removes ?ref=.
func (s *Server) removeImage(w http.ResponseWriter, req *http.Request, _ Pods) error {
	ref := req.URL.Query().Get("ref")
	if ref == "" {
		return apierrors.NewBadRequest("ref: say which image to remove")
	}
	image, err := s.cfg.Runtime.ImageStatus(req.Context(), ref)
	if err == nil && image == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "images"}, ref)
	}
	if err == nil {
		err = s.cfg.Runtime.RemoveImage(req.Context(), ref)
	}
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	send(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
	return nil
}
