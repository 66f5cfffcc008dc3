package asl

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// What the evaluation of one state may cost. All machines share the leading master's memory and CPU, so each evaluation has a bound.
const (
	// MaxData is what a value may have as JSON, in bytes, as at AWS.
	MaxData = 256 << 10
	// MaxMade is what functions make in one state, and what the branches of a state come to, together.
	MaxMade = 16 * MaxData
	// maxVisits is how many values the paths and functions of a state may look at, strings counted by their length. One of MaxData has
	// up to MaxData/2 values in it.
	maxVisits = 1 << 21
	// visitBytes is how much of a string counts as a value.
	visitBytes = 64
	// readBytes is that where it is looked at character by character: then it costs as much as what has most values for its length.
	readBytes = 2
)

// Context is what the evaluation of a state has beside its input: the context object ($$), what random numbers follow from, and how
// much the evaluation has cost. A Context is for one evaluation.
type Context struct {
	Object any
	Random string

	drawn  int // random values so far
	visits int
	made   int    // bytes
	over   *Error // the bound that has been met
}

// visit counts values that are looked at, and reports whether that many may be.
func (c *Context) visit(n int) bool {
	if c.visits += n; c.visits > maxVisits && c.over == nil {
		c.over = errorf(ErrRuntime, "the paths and functions of the state look at more than %d values: ask for what is needed by its name, and not by * and ..", maxVisits)
	}
	return c.over == nil
}

// small reports whether a value is not too large. Parts of a value may be in it many times, so that it takes less memory than it has bytes.
func (c *Context) small(v any) bool {
	if c.size(v, 0) > MaxData && c.over == nil {
		c.over = errorf(ErrDataLimit, "a value of the state would have more than %d bytes", MaxData)
	}
	return c.over == nil
}

// makes counts what a function has made.
func (c *Context) makes(v any) bool {
	n := c.size(v, 0)
	switch c.made += n; {
	case c.over != nil:
	case n > MaxData:
		c.over = errorf(ErrDataLimit, "a function of the state would make more than %d bytes", MaxData)
	case c.made > MaxMade:
		c.over = errorf(ErrDataLimit, "the functions of the state would make more than %d bytes together", MaxMade)
	}
	return c.over == nil
}

// size adds the bytes of v as JSON to n. It looks no further when there are too many.
func (c *Context) size(v any, n int) int {
	var number [32]byte
	if n > MaxData || !c.visit(1) {
		return MaxData + 1
	}
	switch v := v.(type) {
	case map[string]any:
		n += max(2, 1+len(v)) // braces, commas
		for key, x := range v {
			if n = c.size(x, c.size(key, n+1)); n > MaxData {
				break
			}
		}
		return n
	case []any:
		n += max(2, 1+len(v))
		for _, x := range v {
			if n = c.size(x, n); n > MaxData {
				break
			}
		}
		return n
	case string:
		c.visit(len(v) / visitBytes)
		return n + quoted(v)
	case int64:
		return n + len(strconv.AppendInt(number[:0], v, 10))
	case bool:
		if !v {
			return n + len("false")
		}
	case float64:
		data, _ := Encode(v) //nolint:errcheck // numbers of JSON are finite
		return n + len(data)
	}
	return n + len("null")
}

// quoted is how many bytes a string has as JSON.
func quoted(s string) int {
	n := len(s) + 2
	for i, r := range s {
		switch {
		case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t' || r == '\b' || r == '\f':
			n++
		case r < ' ':
			n += len(`\u0000`) - 1
		case r == '\u2028' || r == '\u2029':
			n += len(`\u2028`) - utf8.RuneLen(r)
		case r == utf8.RuneError:
			if _, width := utf8.DecodeRuneInString(s[i:]); width == 1 { // not UTF-8
				n += len(`\ufffd`) - 1
			}
		}
	}
	return n
}

// Size is how many bytes a value has as JSON, or more than MaxData.
func Size(v any) int { return new(Context).size(v, 0) }

func (e *Error) Error() string { return e.Name + ": " + e.Cause }

func errorf(name, format string, args ...any) *Error {
	return &Error{Name: name, Cause: fmt.Sprintf(format, args...)}
}
