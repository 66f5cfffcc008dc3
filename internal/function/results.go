package function

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"minik8s/internal/aggregation"
	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
)

// send answers with a result.
func send(w http.ResponseWriter, q question, r result) {
	h := w.Header()
	if r.contentType != "" {
		h.Set("Content-Type", r.contentType)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(r.body)))
	h.Set(headerCall, q.id)
	h.Set(headerFunction, r.function)
	if r.cold {
		h.Set(headerCold, "true")
	}
	if r.fault != "" {
		h.Set(headerFault, r.fault)
	}
	w.WriteHeader(r.status)
	w.Write(r.body) //nolint:errcheck // a caller that has gone needs no answer
}

// accepted answers with a call's id.
func accepted(w http.ResponseWriter, q question, how manner) {
	h := w.Header()
	h.Set(headerCall, q.id)
	h.Set("Location", fmt.Sprintf("/apis/minik8s.io/v1/namespaces/%s/functioncalls/%s/result", q.function.Namespace, q.id))
	if how.text {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, q.id+"\n") //nolint:errcheck // as in send
		return
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	json.NewEncoder(w).Encode(map[string]string{"id": q.id}) //nolint:errcheck // as in send
}

// result answers functioncalls/ID/result: the result as it came, or 202 while there is none. A PUT gives the call its result, which
// then is not what the function returns.
func (s *Server) result(w http.ResponseWriter, r *aggregation.Connected) error {
	c, kept := r.Object.(*minik8s.FunctionCall)
	if !kept {
		return s.recorded(w, r)
	}
	if r.Method == http.MethodPut {
		return s.give(w, r, c)
	}
	q := question{id: c.Name, function: loop.Key{Namespace: c.Namespace, Name: c.Spec.Function}}
	if !c.Status.Ended() {
		if s.has(callKey(c), c.UID) {
			w.Header().Set(headerMaster, s.cfg.Master)
		}
		accepted(w, q, manner{text: r.Query.Has("text")})
		return nil
	}
	status := map[string]int{"": http.StatusOK, minik8s.FaultFunction: http.StatusInternalServerError, minik8s.FaultCaller: http.StatusBadRequest}[c.Status.Fault]
	if status == 0 { // the platform's
		status = http.StatusBadGateway
	}
	send(w, q, result{status: status, fault: c.Status.Fault, contentType: c.Status.ContentType, body: c.Status.Result, function: c.Status.Function, cold: c.Status.Cold})
	return nil
}

// recorded answers with the result of a call that somebody has waited for, while it is remembered.
func (s *Server) recorded(w http.ResponseWriter, r *aggregation.Connected) error {
	if validation.IsDNS1123Subdomain(r.Name) != nil { // names of objects that are not there may be anything
		return apierrors.NewNotFound(api.FunctionCalls.GR(), r.Name)
	}
	if _, passed, err := s.lead(w, r, api.FunctionCalls, minik8s.FunctionResultSubresource); passed || err != nil {
		return err
	}
	c := s.last.get(r.Namespace, r.Name)
	switch {
	case c == nil:
		return apierrors.NewNotFound(api.FunctionCalls.GR(), r.Name)
	case c.Cut:
		return apierrors.NewResourceExpired(fmt.Sprintf("call %s ended with status %d; its result was too long to be kept beside the one who waited for it", c.ID, c.Status))
	}
	send(w, question{id: c.ID, function: c.function}, c.result)
	return nil
}

// give ends a call with a result that somebody else has. Nobody's result is replaced.
func (s *Server) give(w http.ResponseWriter, r *aggregation.Connected, c *minik8s.FunctionCall) error {
	if c.Status.Ended() {
		return apierrors.NewConflict(api.FunctionCalls.GR(), c.Name, errors.New("it has its result already"))
	}
	body, held, err := s.read(w, r.Request, loop.Key{Namespace: c.Namespace, Name: c.Spec.Function}, maxKept)
	if err != nil {
		return err
	}
	defer held.free()
	now := metav1.NewTime(clock.Now())
	status := minik8s.FunctionCallStatus{State: minik8s.CallSucceeded, StartTime: c.Status.StartTime, EndTime: &now, Function: c.Spec.Function,
		Result: body, ContentType: r.Header.Get("Content-Type")}
	if status.StartTime == nil {
		status.StartTime = &now
	}
	if err := writeStatus(r.Context(), s.client, c, status); err != nil {
		if apierrors.IsInvalid(err) { // it has ended meanwhile
			return apierrors.NewConflict(api.FunctionCalls.GR(), c.Name, errors.New("it has its result already"))
		}
		return err
	}
	w.Header().Set(headerCall, c.Name)
	w.WriteHeader(http.StatusOK)
	return nil
}

// same refuses (409) a call whose id another function's call has: who says one id twice means one call.
func (s *Server) same(ctx context.Context, q question) error {
	c, err := client.Get[*minik8s.FunctionCall](ctx, s.client, client.Key{Kind: api.FunctionCalls, Namespace: q.function.Namespace, Name: q.id})
	if err != nil {
		return err
	}
	if c.Spec.Function != q.function.Name || !bytes.Equal(c.Spec.Body, q.body) {
		return apierrors.NewConflict(api.FunctionCalls.GR(), q.id, fmt.Errorf("it is a call of function %s with its own argument", c.Spec.Function))
	}
	return nil
}
