package apiserver

import (
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"minik8s/internal/registry"
)

// decodeBody reads a body that asks for something to be done and is stored nowhere.
func (r *request) decodeBody(kind string, into runtime.Object) error {
	data, err := r.body()
	if err != nil {
		return err
	}
	if hasMagic(data) {
		err = decodeProtobuf(data, into)
	} else {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		return notValid(kind, data, into, err)
	}
	return nil
}

// notValid is a body that could not be read, with what is wrong with it and where.
func notValid(kind string, data []byte, into runtime.Object, err error) error {
	text := err.Error()
	if asJSON, bad := yaml.YAMLToJSON(data); bad == nil && !hasMagic(data) { // JSON comes out as it went in
		text = registry.ExplainDecode(asJSON, into, err)
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the body is not a valid %s: %s", kind, text))
}

// answerQuestion gives a question back with its answer.
func (s *Server) answerQuestion(r *request) error {
	if err := r.plain(); err != nil {
		return err
	}
	obj, err := s.decode(r)
	if err != nil {
		return err
	}
	answered, err := s.reg.Ask(r.Request().Context(), r.ask, obj)
	if err != nil {
		return err
	}
	return r.answerObject(http.StatusCreated, answered)
}

// token is serviceaccounts/token: it makes a token, which is in the answer and nowhere else.
func (s *Server) token(r *request) error {
	req := &authenticationv1.TokenRequest{}
	if err := r.decodeBody("TokenRequest", req); err != nil {
		return err
	}
	made, err := s.reg.Token(r.Request().Context(), r.ask, req)
	if err != nil {
		return err
	}
	if err := r.plain(); err != nil {
		return err
	}
	return r.answerObject(http.StatusCreated, made)
}

// evict is pods/eviction: a deletion that may be refused one day for the sake of the pod's set.
func (s *Server) evict(r *request) error {
	opts, err := r.writeOptions()
	if err != nil {
		return err
	}
	eviction := &policyv1.Eviction{}
	if err := r.decodeBody("Eviction", eviction); err != nil {
		return err
	}
	if err := s.reg.Evict(r.Request().Context(), r.ask, eviction, opts); err != nil {
		return err
	}
	if err := r.plain(); err != nil {
		return err
	}
	return r.answerObject(http.StatusCreated, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusSuccess, Code: http.StatusCreated})
}
