package validation

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/robfig/cron/v3"
	"golang.org/x/net/http/httpguts"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api/minik8s"
)

const (
	// maxFunctionName leaves room in names of pods for what is derived from it.
	maxFunctionName = 50
	// maxFunctionBytes is what a function's files may have together: the object is to fit into the store.
	maxFunctionBytes = 1 << 20
	maxConcurrency   = 1000
	maxHeaderValue   = 1024
	maxInstances     = 1000
)

// functionNames have capitals and underscores, too, as in Python.
var functionNames = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)

// functionName is the rule for names of functions.
func functionName(name string, _ bool) []string {
	var out []string
	if !functionNames.MatchString(name) {
		out = append(out, "a function's name has letters, digits, '-', '_' and '.', and begins and ends with a letter or a digit (as in 'addFive', or 'is_hello')")
	}
	if len(name) > maxFunctionName {
		out = append(out, fmt.Sprintf("must be no more than %d characters", maxFunctionName))
	}
	if name == minik8s.FunctionReturn {
		out = append(out, "RETURN is the end of a chain of functions")
	}
	return out
}

// Function checks a Function. The functions that it names need not exist.
func Function(f *minik8s.Function) field.ErrorList {
	s := &f.Spec
	errs := functionProgram(s)
	errs = append(errs, env(s.Env, spec.Child("env"))...)
	errs = append(errs, resources(&s.Resources, spec.Child("resources"))...)
	errs = append(errs, oneOf(spec.Child("version"), s.Version, minik8s.FunctionV1, minik8s.FunctionV2)...)
	errs = append(errs, oneOf(spec.Child("retry"), s.Retry, minik8s.RetryWhenUnsent, minik8s.RetryNever)...)
	within := func(name string, n, least, most int32) {
		if n < least || n > most {
			errs = append(errs, field.Invalid(spec.Child(name), n, fmt.Sprintf("must be from %d to %d", least, most)))
		}
	}
	const day = 24 * 3600
	within("timeoutSeconds", s.TimeoutSeconds, 1, day)
	within("concurrency", s.Concurrency, 1, maxConcurrency)
	within("targetConcurrency", s.TargetConcurrency, 1, s.Concurrency)
	within("maxInstances", s.MaxInstances, 1, maxInstances)
	within("minInstances", s.MinInstances, 0, s.MaxInstances)
	within("initialInstances", s.InitialInstances, 0, s.MaxInstances)
	within("idleSeconds", s.IdleSeconds, 1, 30*day)
	within("resultSeconds", s.ResultSeconds, 1, 30*day)
	if s.Address != "" && s.Address != minik8s.AddressAuto {
		if _, err := netip.ParseAddr(s.Address); err != nil {
			errs = append(errs, field.Invalid(spec.Child("address"), s.Address, "expected an address, as 10.7.0.3, or Auto"))
		}
	}
	errs = append(errs, functionTriggers(s.Triggers)...)
	for _, next := range []struct{ field, name string }{{"left", s.Left}, {"right", s.Right}} {
		if next.name != "" && next.name != minik8s.FunctionReturn {
			errs = append(errs, say(spec.Child(next.field), next.name, functionName(next.name, false))...)
		}
	}
	return errs
}

// functionProgram checks what is run.
func functionProgram(s *minik8s.FunctionSpec) field.ErrorList {
	if s.Image != "" {
		var errs field.ErrorList
		for name, given := range map[string]bool{"source": s.Source != "", "files": len(s.Files) > 0, "preRun": s.PreRun != ""} {
			if given {
				errs = append(errs, field.Forbidden(spec.Child(name), "may not be set beside image, which has its own files"))
			}
		}
		if s.Version != minik8s.FunctionV2 {
			errs = append(errs, field.Forbidden(spec.Child("version"), "a function with an image is v2: its instances serve many calls"))
		}
		if s.Port < 1 || s.Port > 65535 {
			errs = append(errs, field.Invalid(spec.Child("port"), s.Port, "must be from 1 to 65535"))
		}
		return errs
	}
	var errs field.ErrorList
	if s.Source == "" {
		errs = append(errs, field.Required(spec.Child("source"), "a Python file that defines main(params) or run(arg); or set image"))
	}
	if s.Port != 0 {
		errs = append(errs, field.Forbidden(spec.Child("port"), "may be set beside image alone"))
	}
	size, seen := len(s.Source)+len(s.PreRun), map[string]bool{"main.py": true}
	for i := range s.Files {
		f, at := &s.Files[i], spec.Child("files").Index(i)
		size += len(f.Content) + len(f.Data)
		errs = append(errs, functionPath(at.Child("path"), f.Path)...)
		if seen[f.Path] {
			errs = append(errs, field.Duplicate(at.Child("path"), f.Path))
		}
		seen[f.Path] = true
		if f.Content != "" && len(f.Data) > 0 {
			errs = append(errs, field.Forbidden(at.Child("data"), "may not be set beside content"))
		}
	}
	if size > maxFunctionBytes {
		errs = append(errs, field.Invalid(spec, fmt.Sprintf("%d bytes", size), fmt.Sprintf("source, files and preRun may have %d bytes together: put the rest into an image, and set image", maxFunctionBytes)))
	}
	return errs
}

// functionPath checks a path below the folder of the source.
func functionPath(at *field.Path, p string) field.ErrorList {
	switch {
	case p == "":
		return field.ErrorList{field.Required(at, "a path below the folder of the source")}
	case !utf8.ValidString(p) || strings.ContainsFunc(p, func(r rune) bool { return r < ' ' }) || strings.HasPrefix(p, "/") ||
		slices.Contains(strings.Split(p, "/"), "..") || path.Clean(p) != p || p == "." || len(p) > 1024:
		return field.ErrorList{field.Invalid(at, p, `must be a path below the folder of the source, as "lib/words.py"`)}
	}
	return nil
}

// FunctionStatusUpdate checks a status.
func FunctionStatusUpdate(f, _ *minik8s.Function) field.ErrorList {
	s, at := &f.Status, field.NewPath("status")
	errs := nonNegative(at.Child("instances"), s.Instances)
	errs = append(errs, nonNegative(at.Child("readyInstances"), s.ReadyInstances)...)
	return append(errs, metav1validation.ValidateConditions(s.Conditions, at.Child("conditions"))...)
}

// FunctionCall checks a call. Its function need not exist: then the call fails.
func FunctionCall(c *minik8s.FunctionCall) field.ErrorList {
	if c.Spec.Function == "" {
		return field.ErrorList{field.Required(spec.Child("function"), "the name of a Function of the namespace")}
	}
	errs := say(spec.Child("function"), c.Spec.Function, functionName(c.Spec.Function, false))
	if len(c.Spec.Body) > maxFunctionBytes {
		errs = append(errs, field.TooLong(spec.Child("body"), "", maxFunctionBytes))
	}
	return append(errs, headerValue(spec.Child("contentType"), c.Spec.ContentType)...)
}

// headerValue checks what is sent as the value of a header.
func headerValue(at *field.Path, v string) field.ErrorList {
	if !httpguts.ValidHeaderFieldValue(v) || len(v) > maxHeaderValue {
		return field.ErrorList{field.Invalid(at, v, fmt.Sprintf("expected the value of a header of HTTP, as text/plain, without control characters and of %d bytes at most", maxHeaderValue))}
	}
	return nil
}

// FunctionCallUpdate checks a call that replaces old.
func FunctionCallUpdate(c, old *minik8s.FunctionCall) field.ErrorList {
	if !apiequality.Semantic.DeepEqual(c.Spec, old.Spec) {
		return field.ErrorList{field.Forbidden(spec, "a call cannot be changed: make another one")}
	}
	return nil
}

// FunctionCallStatusUpdate checks a status. What has ended stays as it is.
func FunctionCallStatusUpdate(c, old *minik8s.FunctionCall) field.ErrorList {
	at := field.NewPath("status")
	if old.Status.Ended() && !apiequality.Semantic.DeepEqual(c.Status, old.Status) {
		return field.ErrorList{field.Forbidden(at, "the call has ended")}
	}
	if c.Status.State == "" {
		return nil
	}
	if errs := headerValue(at.Child("contentType"), c.Status.ContentType); errs != nil {
		return errs
	}
	errs := oneOf(at.Child("state"), c.Status.State, minik8s.CallRunning, minik8s.CallSucceeded, minik8s.CallFailed)
	if c.Status.Fault != "" {
		errs = append(errs, oneOf(at.Child("fault"), c.Status.Fault, minik8s.FaultFunction, minik8s.FaultCaller, minik8s.FaultPlatform)...)
	}
	if c.Status.Ended() && c.Status.EndTime == nil {
		errs = append(errs, field.Required(at.Child("endTime"), "of a call that has ended"))
	}
	return errs
}

// maxTriggers is how many events may call one function.
const maxTriggers = 32

// functionTriggers checks what calls a function.
func functionTriggers(all []minik8s.FunctionTrigger) (errs field.ErrorList) {
	at := spec.Child("triggers")
	if len(all) > maxTriggers {
		errs = append(errs, field.TooMany(at, len(all), maxTriggers))
	}
	names := map[string]bool{}
	for i := range all {
		t, at := &all[i], at.Index(i)
		errs = append(errs, say(at.Child("name"), t.Name, validation.IsDNS1123Label(t.Name))...)
		if names[t.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), t.Name))
		}
		names[t.Name] = true
		switch {
		case (t.Schedule == "") == (t.Object == nil):
			errs = append(errs, field.Invalid(at, t.Name, "a trigger has a schedule or an object, one of them"))
		case t.Schedule != "":
			if _, err := Schedule(t.Schedule, t.TimeZone); err != nil {
				errs = append(errs, field.Invalid(at.Child("schedule"), t.Schedule, err.Error()))
			}
		default:
			if t.Body != "" || t.TimeZone != "" {
				errs = append(errs, field.Forbidden(at, "body and timeZone are of schedules"))
			}
			errs = append(errs, functionObject(at.Child("object"), t.Object)...)
		}
	}
	return errs
}

func functionObject(at *field.Path, o *minik8s.FunctionObjectTrigger) (errs field.ErrorList) {
	for _, x := range []struct{ name, value string }{{"apiVersion", o.APIVersion}, {"kind", o.Kind}} {
		if x.value == "" {
			errs = append(errs, field.Required(at.Child(x.name), ""))
		}
	}
	switch o.Kind {
	case "Function", "FunctionCall", "Event":
		errs = append(errs, field.Invalid(at.Child("kind"), o.Kind, "calls change such objects themselves, so that there would be no end"))
	}
	if _, err := metav1.LabelSelectorAsSelector(o.Selector); err != nil {
		errs = append(errs, field.Invalid(at.Child("selector"), "", err.Error()))
	}
	for i, on := range o.On {
		errs = append(errs, oneOf(at.Child("on").Index(i), on, minik8s.ObjectCreated, minik8s.ObjectUpdated, minik8s.ObjectDeleted)...)
	}
	return errs
}

// Schedule reads when a trigger calls, as in a crontab, by the clock of a time zone.
func Schedule(text, zone string) (cron.Schedule, error) {
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		return nil, errors.New("say the time zone in timeZone")
	}
	if zone == "Local" {
		return nil, errors.New("timeZone: expected a name that means the same on all masters, as Europe/Berlin")
	}
	if _, err := time.LoadLocation(zone); err != nil {
		return nil, fmt.Errorf("timeZone: %w", err)
	}
	if zone == "" {
		zone = "UTC"
	}
	return cron.ParseStandard("CRON_TZ=" + zone + " " + text)
}
