package history

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/anishathalye/porcupine"
)

// state is one object: whether it is there, and its last change. Its revision is anyRevision after a write whose answer was
// lost.
type state struct {
	there    bool
	revision int64
	value    string
}

const anyRevision = -1

// never is when an open request returns.
const never = time.Duration(math.MaxInt64)

// result is what an operation of the model came to, as far as it is known.
type result struct {
	outcome  Outcome
	code     int
	revision int64 // of the object that was read or written, or of its deletion; 0 if unknown
	value    string
}

// step applies a request to an object. It reports whether the request may have come to its result there.
func (s state) step(o *Op, r result) (bool, state) {
	switch {
	case r.outcome == Unknown:
		return true, s.open(o)
	case r.outcome == Refused:
		return s.refuses(o, r.code), s
	}
	newer := s.revision == anyRevision || r.revision == 0 || r.revision > s.revision
	after := state{there: true, revision: r.revision, value: r.value}
	switch o.Kind {
	case Create:
		return !s.there && newer, after
	case Update:
		return s.is(o.Version) && newer, after
	case Replace:
		return s.there && newer, after
	case Delete:
		after = state{revision: s.revision}
		if r.revision != 0 {
			after.revision = r.revision
		}
		return s.there && newer && (o.Version == 0 || s.is(o.Version)), after
	}
	return s.is(r.revision) && s.value == r.value, after
}

// is reports whether the object may be there in a version.
func (s state) is(version int64) bool {
	return s.there && (s.revision == version || s.revision == anyRevision)
}

// refuses reports whether the object may be such that a request is refused. Most reasons have nothing to do with it.
func (s state) refuses(o *Op, code int) bool {
	switch {
	case code == http.StatusNotFound:
		return !s.there
	case code == http.StatusConflict && o.Kind == Create:
		return s.there
	case code == http.StatusConflict && o.Version != 0:
		return s.there && (s.revision != o.Version)
	}
	return true // a Replace may meet too many others
}

// open is the object after a request that may have been carried out. That it was not needs no step: it then comes after all
// others.
func (s state) open(o *Op) state {
	after := state{there: true, revision: anyRevision, value: o.Value}
	switch {
	case o.Kind == Create && !s.there, o.Kind == Replace && s.there, o.Kind == Update && s.is(o.Version):
		return after
	case o.Kind == Delete && s.there && (o.Version == 0 || s.is(o.Version)):
		return state{revision: s.revision}
	}
	return s
}

// model is that of one object, for porcupine.
func model(start int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{revision: start} },
		Step: func(s, in, out any) (bool, any) { return s.(state).step(in.(*Op), out.(result)) },
		DescribeOperation: func(in, out any) string {
			o, r := in.(*Op), out.(result)
			text := string(o.Kind)
			if o.Version != 0 {
				text += fmt.Sprintf(" of %d", o.Version)
			}
			if o.Value != "" {
				text += " to " + o.Value
			}
			switch {
			case r.outcome == OK:
				return fmt.Sprintf("%s: %s at %d", text, r.value, r.revision)
			case r.outcome == Unknown:
				return text + ": unknown"
			}
			return fmt.Sprintf("%s: %d", text, r.code)
		},
		DescribeState: func(s any) string {
			switch s := s.(state); {
			case !s.there:
				return fmt.Sprintf("none since %d", s.revision)
			default:
				return fmt.Sprintf("%s at %d", s.value, s.revision)
			}
		},
		DescribeOperationMetadata: func(m any) string { return fmt.Sprint(m) },
	}
}
