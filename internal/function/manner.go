package function

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/function/plan"
)

// manner is how a caller wants to be answered.
type manner struct {
	id    string        // the call's, if the caller gives it one: then it is made once
	later bool          // at once, with the call's id
	wait  time.Duration // how long for the result; then with the id
	text  bool          // the id alone
}

// limitOf is how long a call of a function may take before its instance's last word must be here.
func limitOf(fn *minik8s.Function) time.Duration {
	return time.Duration(fn.Spec.TimeoutSeconds)*time.Second + 2*slack
}

// mannerOf reads Prefer (RFC 7240): respond-async, and wait=SECONDS. The parameter wait says it, too.
func mannerOf(r *http.Request, query url.Values, fn *minik8s.Function) (manner, error) {
	how := manner{wait: limitOf(fn), text: query.Has("text")}
	for _, line := range r.Header.Values("Prefer") {
		for word := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(word), "=")
			switch strings.ToLower(name) {
			case "respond-async":
				how.later = true
			case "wait":
				if n, err := strconv.Atoi(value); err == nil && n >= 0 && n <= int(how.wait/time.Second) {
					how.later, how.wait = false, time.Duration(n)*time.Second
				}
			}
		}
	}
	if v := query.Get("wait"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 {
			return how, apierrors.NewBadRequest(fmt.Sprintf("wait: %q is no duration, as 10s is", v))
		}
		how.wait = d
	}
	if how.id = query.Get("id"); how.id != "" {
		if errs := validation.IsDNS1123Subdomain(how.id); errs != nil {
			return how, apierrors.NewBadRequest(fmt.Sprintf("id: %q cannot be a call's: %s", how.id, strings.Join(errs, "; ")))
		}
		if strings.HasPrefix(how.id, plan.TriggerPrefix) {
			return how, apierrors.NewBadRequest(fmt.Sprintf("id: %q: calls by triggers have names that begin with %s, and nobody else's; choose another id", how.id, plan.TriggerPrefix))
		}
	}
	how.later = how.later || how.wait == 0 || how.id != ""
	return how, nil
}

func newID() string {
	var b [10]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	return "call-" + hex.EncodeToString(b[:])
}
