package asl

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/theory/jsonpath"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What would take the master's memory or time ends at a bound, with the error that is for it.
func TestWhatAStateCosts(t *testing.T) {
	list := make([]any, 30000)
	for i := range list {
		list[i] = int64(i)
	}
	deep := any("x")
	for range 1500 {
		deep = []any{deep}
	}
	input := map[string]any{"list": list, "big": strings.Repeat("x", 200<<10), "spaces": strings.Repeat(" ", 200<<10) + "1", "deep": deep, "quotes": strings.Repeat(`"`, 1000), "small": []any{[]any{[]any{int64(1)}}}}
	ten := strings.Repeat("[0,0,0,0,0,0,0,0,0,0]", 8)
	nested := func(f, inner string, n int) string { return strings.Repeat(f+"(", n) + inner + strings.Repeat(")", n) }
	for _, x := range []struct{ what, text, want string }{
		{"a selector many times", `$.deep` + ten, ErrRuntime},
		{"all below all", `$..*..*`, ErrRuntime},
		{"all below all of what is deep", `$.deep..*..*`, ErrRuntime},
		{"one value many times", `$['big','big']`, ErrDataLimit},
		{"a filter of many terms", `$.list[?(@ == 1` + strings.Repeat(" || @ == 1", 95) + `)]`, ErrRuntime},
		{"a filter with the whole input", `$.list[?($ == $)]`, ErrRuntime},
		{"a filter of what is deep", `$.deep..[?(@ == $.deep)]`, ErrRuntime},
		{"slices", `$.list[` + strings.Repeat("::7,", 150) + `0]`, ErrRuntime},
		{"an array of the input", `States.Array($, $)`, ErrDataLimit},
		{"arrays of arrays", `States.Array(` + strings.Repeat("$.list,", 3) + `$.list)`, ErrDataLimit},
		{"a text many times", `States.Format('` + strings.Repeat("{}", 60) + `'` + strings.Repeat(", $.big", 60) + `)`, ErrDataLimit},
		{"escapes of escapes", nested("States.JsonToString", `$.quotes`, 9), ErrDataLimit},
		{"as JSON", `States.JsonToString($['big','big'])`, ErrDataLimit},
		{"what is unique", `States.ArrayUnique($.list)`, ""},
		{"what contains", `States.ArrayContains($.list, $.list)`, ""},
		{"a split by many", `States.StringSplit($.big, $.big)`, ""},
		{"splits that leave nothing", `States.Array(` + strings.Repeat("States.StringSplit($.big, 'x'),", 100) + `1)`, ErrRuntime},
		{"texts that say little as JSON", `States.Array(` + strings.Repeat("States.StringToJson($.spaces),", 100) + `1)`, ErrRuntime},
		{"some splits", `States.Array(` + strings.Repeat("States.StringSplit($.big, 'x'),", 10) + `1)`, ""},
		{"all by name", `$.list`, ""},
		{"all values", `$..*`, ""},
		{"a filter", `$.list[?(@ > 29990)]`, ""},
	} {
		from, err := parseExpression(x.text)
		if err != nil {
			t.Errorf("%s: %v", x.what, err)
			continue
		}
		c := &Context{}
		v, failed := from.eval(input, c)
		if got := name(failed); got != x.want && (x.what != "all values" || got != ErrDataLimit) {
			t.Errorf("%s: %q after %d values", x.what, got, c.visits)
		}
		if x.what == "a text many times" && c.visits > 8*len(input["big"].(string))/visitBytes {
			t.Errorf("%s: it ends late, after %d values", x.what, c.visits)
		}
		if failed == nil && Size(v) > MaxData {
			t.Errorf("%s: it gives more than a value may have", x.what)
		}
	}
	// Rules that compare long texts.
	for rule, want := range map[string]string{
		`{"Variable":"$.big","StringMatches":"*a*x","Next":"A"},`:         ErrRuntime,
		`{"Variable":"$.big","StringLessThanPath":"$.big","Next":"A"},`:   ErrRuntime,
		`{"Variable":"$.spaces","StringGreaterThan":"some","Next":"A"},`:  ErrRuntime,
		`{"Variable":"$.list[0]","NumericGreaterThan":99999,"Next":"A"},`: "",
		`{"Variable":"$.list[0]","StringMatches":"*a*x","Next":"A"},`:     "",
		`{"Variable":"$.quotes","StringMatches":"*a*x*a*x*","Next":"A"},`: "",
		`{"Variable":"$.deep","StringLessThanPath":"$.deep","Next":"A"},`: "",
	} {
		s := parse(t, `{"StartAt":"S","States":{"A":{"Type":"Succeed"},"S":{"Type":"Choice","Default":"A","Choices":[`+strings.TrimSuffix(strings.Repeat(rule, 1000), ",")+`]}}}`).States["S"]
		if _, err := s.Choose(input, &Context{}); name(err) != want {
			t.Errorf("%s: %v", rule, err)
		}
	}
	// A template that has the input many times, and functions that make much together.
	for fields, want := range map[string]string{
		`"Parameters":{"a.$":"$","b.$":"$"}`: ErrDataLimit,
		`"Parameters":{"a":[` + strings.Repeat(`{"n.$":"States.ArrayLength(States.Array($))"},`, 40) + `{}]}`: ErrDataLimit,
		`"ResultSelector":{"a.$":"$","b.$":"$.big"}`:                                                          ErrDataLimit,
	} {
		s, c := one(t, `"Type":"Task","Resource":"f","End":true,`+fields), &Context{}
		_, err := s.Input(input, c)
		if err == nil {
			_, err = s.Output(input, input, c)
		}
		if name(err) != want {
			t.Errorf("%.40s: %v", fields, err)
		}
		if h := (&State{Catch: []Catcher{{Errors: []string{ErrAll}, Next: "X"}}}); handles(h.Catch[0].Errors, err) {
			t.Errorf("%.40s: States.ALL handles it", fields)
		}
	}
}

func name(err *Error) string {
	if err == nil {
		return ""
	}
	return err.Name
}

// What could not be bounded is no path.
func TestDeepDefinitions(t *testing.T) {
	pass := func(parameters string) string {
		return `{"StartAt":"A","States":{"A":{"Type":"Pass","Parameters":` + parameters + `,"End":true}}}`
	}
	for _, x := range []struct{ parameters, want string }{
		{`{"x.$":"$` + strings.Repeat("[?(", 200) + `"}`, `def.States[A].Parameters.x.$: Invalid value`},
		{`{"x.$":"$` + strings.Repeat("[?(", 200) + `"}`, `brackets may lie 10 deep`},
		{`{"x.$":"$[?` + strings.Repeat("(", 900) + `@.a` + strings.Repeat(")", 90) + `]"}`, `brackets may lie 10 deep`},
		{`{"x.$":"$` + strings.Repeat(".x", 600) + `"}`, `a path may have 1024 characters, and this one has 1201`},
		{`{"x.$":"$.a[?(@..b)]"}`, `in a filter a path must be to one value`},
		{`{"x.$":"$.a[?(@.b == 1 && (!(@.c[*])))]"}`, `in a filter a path must be to one value`},
		{`{"x.$":"$.a[?(match(@.b, 'x'))]"}`, `match`},
		{`{"x.$":"` + strings.Repeat("States.Array(", 11) + strings.Repeat(")", 11) + `"}`, `functions may lie 10 deep`},
		{strings.Repeat(`{"x":`, 101) + `1` + strings.Repeat("}", 101), `values may lie 100 deep`},
		{strings.Repeat(`[`, 101) + `1` + strings.Repeat("]", 101), `values may lie 100 deep`},
	} {
		_, errs := Parse([]byte(pass(x.parameters)), field.NewPath("def"))
		if got := fmt.Sprint(errs.ToAggregate()); !strings.Contains(got, x.want) {
			t.Errorf("%.60s: %.300s", x.parameters, got)
		}
	}
}

// values makes random JSON values.
func values(r *rand.Rand, depth int) any {
	texts := []string{"a", "b", "c", "a b", "\"\\\n\x01", "é\u2028<&>", ""}
	switch k := r.IntN(9); {
	case k < 3 && depth > 0:
		out := map[string]any{}
		for range r.IntN(5) {
			out[texts[r.IntN(len(texts))]] = values(r, depth-1)
		}
		return out
	case k < 5 && depth > 0:
		out := []any{}
		for range r.IntN(5) {
			out = append(out, values(r, depth-1))
		}
		return out
	case k == 5:
		return r.NormFloat64() * 1e9
	case k == 6:
		return int64(r.IntN(3))
	case k == 7:
		return []any{nil, true, false}[r.IntN(3)]
	}
	return texts[r.IntN(len(texts))]
}

// A size is what the value has as JSON. A path finds what the library finds, and always in the same order.
func TestSizesAndPathsOfRandomValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	texts := []string{`$`, `$.*`, `$..*`, `$..a`, `$[*]`, `$.a.*`, `$..[0]`, `$[0,1]`, `$..[0,0]`, `$[1:]`, `$[::-1]`, `$..[?(@.a)]`, `$..[?(@ == 1)]`, `$..[?(@.a == $.a)]`, `$[?(!@.b || @.a != 'a')]`, `$..a..*`, `$['a b']`, `$.a[-1]`}
	for range 2000 {
		v := values(r, 5)
		if data, err := Encode(v); err != nil || Size(v) != len(data) {
			t.Fatalf("the size %d of %s", Size(v), data)
		}
		text := texts[r.IntN(len(texts))]
		p, err := parsePath(text)
		if err != nil {
			t.Fatal(text, err)
		}
		show := func(list []any) (out []string) {
			for _, x := range list {
				out = append(out, encoded(t, x))
			}
			return out
		}
		got := show(choose(p.query.Query(), v, &Context{}))
		for range 3 {
			if again := show(choose(p.query.Query(), v, &Context{})); !slices.Equal(got, again) {
				t.Fatalf("%s of %s: %v, and then %v", text, encoded(t, v), got, again)
			}
		}
		want := show(jsonpath.MustParse(text).Select(v))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%s of %s: %v, and the library finds %v", text, encoded(t, v), got, want)
		}
	}
	p, _ := parsePath(`$.*`)
	if got := encoded(t, choose(p.query.Query(), map[string]any{"c": "3", "a": "1", "b": "2"}, &Context{})); got != `["1","2","3"]` {
		t.Errorf("the members of an object: %s", got)
	}
}

// Whatever people write in a path or a function, its cost has a bound. What is counted stands for time and memory.
func FuzzCost(f *testing.F) {
	for _, text := range []string{`$..*..*`, `$[0,0][0,0]`, `$.l[?(@.a == $.l || @ > 1)]`, `States.Array($, States.Format('{}', $.s))`, `States.ArrayUnique($.l)`, `States.ArrayPartition(States.ArrayRange(0, 999, 1), 2)`, `States.StringSplit($.s, $.s)`, `States.JsonMerge($, $, false)`} {
		f.Add(text)
	}
	input := map[string]any{"s": strings.Repeat("ab\\\"", 1000), "l": values(rand.New(rand.NewPCG(3, 4)), 7), "n": int64(7)}
	f.Fuzz(func(t *testing.T, text string) {
		from, err := parseExpression(text)
		if err != nil {
			return
		}
		c := &Context{Object: input}
		v, failed := from.eval(input, c)
		if failed == nil && (c.visits > maxVisits || Size(v) > MaxData) {
			t.Errorf("%q: after %d values of %d bytes it has not failed", text, c.visits, Size(v))
		}
	})
}
