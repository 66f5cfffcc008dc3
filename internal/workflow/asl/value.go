package asl

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Decode reads a JSON value. Whole numbers are int64 where they fit, others float64. No bytes are null.
func Decode(data []byte) (any, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the JSON value")
	}
	return plain(v), nil
}

// Encode writes a value as JSON, with its keys in order, and without escapes for HTML.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = plain(x)
		}
	case []any:
		for i, x := range v {
			v[i] = plain(x)
		}
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return v.String() // beyond what a number can be
		}
		return f
	}
	return v
}

// number is a value as a float64.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// whole is a value as an int64.
func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		if v >= math.MinInt64 && v < math.MaxInt64 && v == math.Trunc(v) { // as a float64 MaxInt64 is one more than it
			return int64(v), true
		}
	}
	return 0, false
}

// nearest is a number as an int64: the nearest, and of two the greater.
func nearest(v any) (int64, bool) {
	if f, ok := v.(float64); ok {
		v = math.Floor(f + 0.5)
	}
	return whole(v)
}

// add adds whole numbers, if an int64 can be their sum.
func add(a, b int64) (int64, bool) {
	sum := a + b
	return sum, (sum > a) == (b > 0)
}

// compareNumbers compares whole numbers exactly.
func compareNumbers(a, b any) (order int, ok bool) {
	x, isX := a.(int64)
	y, isY := b.(int64)
	if isX && isY {
		return compare(x, y), true
	}
	f, isF := number(a)
	g, isG := number(b)
	return compare(f, g), isF && isG
}

func compare[T int64 | float64 | string](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// equal compares JSON values; 1 and 1.0 are equal.
func equal(a, b any) bool {
	if order, ok := compareNumbers(a, b); ok {
		return order == 0
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	}
	return reflect.DeepEqual(a, b)
}

// text is a value as States.Format shows it: a string as it is, others as JSON.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, _ := Encode(v) //nolint:errcheck // it came from JSON
	return string(b)
}

func join(words []string) string { return strings.Join(words, ", ") }

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
