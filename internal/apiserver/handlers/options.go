package handlers

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"minik8s/internal/apiserver/encoding"
	"minik8s/internal/registry"
)

// writeOptions reads dryRun and the field manager, and sends warnings as headers.
func (r *request) writeOptions() (registry.WriteOptions, error) {
	o := registry.WriteOptions{Warn: r.warn, Manager: r.query.Get("fieldManager")}
	apply := strings.HasPrefix(r.Request().Header.Get("Content-Type"), string(types.ApplyPatchType))
	if o.Manager == "" && !apply { // the program's name, as in Kubernetes
		o.Manager, _, _ = strings.Cut(r.Request().UserAgent(), "/")
		o.Manager = strings.Map(func(c rune) rune {
			if !unicode.IsPrint(c) {
				return -1
			}
			return c
		}, o.Manager[:min(len(o.Manager), metav1validation.FieldManagerMaxLength)])
	}
	for _, d := range r.query["dryRun"] {
		if d != metav1.DryRunAll {
			return o, apierrors.NewBadRequest("dryRun: " + strconv.Quote(d) + " is not served, only All")
		}
		o.DryRun = true
	}
	switch r.query.Get("fieldValidation") {
	case "", metav1.FieldValidationIgnore, metav1.FieldValidationWarn, metav1.FieldValidationStrict:
	default:
		return o, apierrors.NewBadRequest("fieldValidation: " + strconv.Quote(r.query.Get("fieldValidation")) + " is none of Ignore, Warn, Strict")
	}
	return o, nil
}

// maxWarning bounds the length of one Warning header.
const maxWarning = 1000

func (r *request) warn(msg string) {
	if len(msg) > maxWarning {
		msg = msg[:maxWarning]
	}
	r.Response().Header().Add("Warning", "299 - "+strconv.Quote(msg))
}

// listOptions reads the query of a list, watch or deletecollection.
func (r *request) listOptions() (registry.ListOptions, error) {
	o := registry.ListOptions{Namespace: r.namespace, Continue: r.query.Get("continue"),
		ResourceVersion: r.query.Get("resourceVersion"),
		Match:           metav1.ResourceVersionMatch(r.query.Get("resourceVersionMatch"))}
	var err error
	if s := r.query.Get("labelSelector"); s != "" {
		if o.Labels, err = labels.Parse(s); err != nil {
			return o, apierrors.NewBadRequest("labelSelector: " + err.Error())
		}
	}
	if s := r.query.Get("fieldSelector"); s != "" {
		if o.Fields, err = fields.ParseSelector(s); err != nil {
			return o, apierrors.NewBadRequest("fieldSelector: " + err.Error())
		}
	}
	if o.Fields, err = registry.StoredFields(r.view, o.Fields); err != nil {
		return o, apierrors.NewBadRequest("fieldSelector: " + err.Error())
	}
	if r.name != "" { // a watch of one object
		one := fields.OneTermEqualSelector("metadata.name", r.name)
		if o.Fields != nil {
			one = fields.AndSelectors(o.Fields, one)
		}
		o.Fields = one
	}
	if s := r.query.Get("limit"); s != "" {
		if o.Limit, err = strconv.ParseInt(s, 10, 64); err != nil || o.Limit < 0 {
			return o, apierrors.NewBadRequest("limit: " + strconv.Quote(s) + " is not a number of objects")
		}
	}
	return o, nil
}

// watchOptions reads the query of a watch.
func (r *request) watchOptions() (registry.WatchOptions, error) {
	l := r.list
	o := registry.WatchOptions{Labels: l.Labels, Bookmarks: isTrue(r.query.Get("allowWatchBookmarks"))}
	send := r.query.Get("sendInitialEvents")
	if send != "" && l.Match != metav1.ResourceVersionMatchNotOlderThan {
		return o, apierrors.NewBadRequest("sendInitialEvents: needs resourceVersionMatch=NotOlderThan")
	}
	rev, err := strconv.ParseInt("0"+l.ResourceVersion, 10, 64)
	if err != nil {
		return o, apierrors.NewBadRequest("resourceVersion: not a number: " + strconv.Quote(l.ResourceVersion))
	}
	o.Revision = rev
	// Without a revision Kubernetes sends the existing objects, then the changes.
	o.Initial = isTrue(send) || send == "" && rev == 0
	o.InitialEnd = isTrue(send) && o.Bookmarks
	return o, nil
}

// deleteOptions are read from the body or the query, if given.
func (r *request) deleteOptions() (*metav1.DeleteOptions, error) {
	opts := &metav1.DeleteOptions{}
	data, err := r.body()
	if err != nil {
		return nil, err
	}
	switch {
	case encoding.IsProtobuf(data):
		err = encoding.DecodeProtobuf(data, opts)
	case len(data) > 0 && looksJSON(data):
		err = json.Unmarshal(data, opts)
	case len(data) > 0:
		err = yaml.Unmarshal(data, opts)
	}
	if err != nil {
		return nil, notValid("DeleteOptions", data, opts, err)
	}
	if s := r.query.Get("gracePeriodSeconds"); s != "" {
		var n int64
		if _, err := fmt.Sscan(s, &n); err != nil {
			return nil, apierrors.NewBadRequest("gracePeriodSeconds: not a number of seconds: " + s)
		}
		opts.GracePeriodSeconds = &n
	}
	if s := r.query.Get("orphanDependents"); s != "" {
		orphan, err := strconv.ParseBool(s)
		if err != nil {
			return nil, apierrors.NewBadRequest("orphanDependents: neither true nor false: " + s)
		}
		//lint:ignore SA1019 old clients send it
		opts.OrphanDependents = &orphan
	}
	if s := r.query.Get("propagationPolicy"); s != "" {
		p := metav1.DeletionPropagation(s)
		opts.PropagationPolicy = &p
	}
	if d := r.query["dryRun"]; len(d) > 0 {
		opts.DryRun = d
	}
	for _, d := range opts.DryRun {
		if d != metav1.DryRunAll {
			return nil, apierrors.NewBadRequest("dryRun: " + d + " is not served, only All")
		}
	}
	return opts, nil
}
