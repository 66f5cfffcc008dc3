package asl

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func value(t *testing.T, s string) any {
	t.Helper()
	v, err := Decode([]byte(s))
	if err != nil {
		t.Fatal(s, err)
	}
	return v
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func parse(t *testing.T, doc string) *Machine {
	t.Helper()
	m, errs := Parse([]byte(doc), field.NewPath("def"))
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return m
}

// one is a machine of one state.
func one(t *testing.T, fields string) *State {
	t.Helper()
	return parse(t, `{"StartAt":"S","States":{"S":{`+fields+`}}}`).States["S"]
}

// The mistakes that a definition may have, each with its place.
func TestMistakes(t *testing.T) {
	for _, x := range []struct{ what, doc, want string }{
		{"no object", `[]`, `def: Required`},
		{"no states", `{"StartAt":"A"}`, `def.States: Required`},
		{"unknown start", `{"StartAt":"addFiv","States":{"addFive":{"Type":"Succeed"}}}`, `def.StartAt: Invalid value: "addFiv": there is no such state here; did you mean addFive?`},
		{"unknown next", `{"StartAt":"A","States":{"A":{"Type":"Pass","Next":"B"}}}`, `def.States[A].Next: Invalid value: "B": there is no such state`},
		{"unreachable", `{"StartAt":"A","States":{"A":{"Type":"Succeed"},"B":{"Type":"Succeed"}}}`, `def.States[B]: Invalid value: "B": no way leads to this state from A`},
		{"no way to an end", `{"StartAt":"A","States":{"A":{"Type":"Pass","Next":"B"},"B":{"Type":"Pass","Next":"A"}}}`, `def.States[A]: Invalid value: "A": no way leads from this state to an end`},
		{"unknown type", `{"StartAt":"A","States":{"A":{"Type":"Tusk"}}}`, `def.States[A].Type: Unsupported value: "Tusk"`},
		{"unknown field", `{"StartAt":"A","States":{"A":{"Type":"Pass","Nxt":"B","End":true}}}`, `def.States[A].Nxt: Forbidden: a Pass state has no such field; did you mean Next`},
		{"bad operator", `{"StartAt":"A","States":{"A":{"Type":"Choice","Choices":[{"Variable":"$.x","NumericEqual":1,"Next":"B"}]},"B":{"Type":"Succeed"}}}`, `def.States[A].Choices[0].NumericEqual: Forbidden: a rule has no such field; did you mean NumericEquals`},
		{"wrong operand", `{"StartAt":"A","States":{"A":{"Type":"Choice","Choices":[{"Variable":"$.x","NumericEquals":"1","Next":"B"}]},"B":{"Type":"Succeed"}}}`, `NumericEquals: Invalid value: "1": must be a number`},
		{"two comparisons", `{"StartAt":"A","States":{"A":{"Type":"Choice","Choices":[{"Variable":"$.x","NumericEquals":1,"IsNull":true,"Next":"B"}]},"B":{"Type":"Succeed"}}}`, `must have one comparison`},
		{"neither next nor end", `{"StartAt":"A","States":{"A":{"Type":"Pass"}}}`, `def.States[A].Next: Required`},
		{"both", `{"StartAt":"A","States":{"A":{"Type":"Pass","Next":"A","End":true}}}`, `def.States[A]: Invalid value: "Next, End"`},
		{"no resource", `{"StartAt":"A","States":{"A":{"Type":"Task","End":true}}}`, `def.States[A].Resource: Required`},
		{"another service", `{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"arn:aws:states:::sqs:sendMessage","End":true}}}`, `must be a function of this cluster`},
		{"a bad path", `{"StartAt":"A","States":{"A":{"Type":"Pass","InputPath":"x","End":true}}}`, `def.States[A].InputPath: Invalid value: "x": must be a path`},
		{"a result in many places", `{"StartAt":"A","States":{"A":{"Type":"Pass","ResultPath":"$.a[*]","End":true}}}`, `def.States[A].ResultPath: Invalid value: "$.a[*]"`},
		{"a bad function", `{"StartAt":"A","States":{"A":{"Type":"Pass","Parameters":{"x.$":"States.Formt('a')"},"End":true}}}`, `def.States[A].Parameters.x.$: Invalid value`},
		{"JSONata", `{"QueryLanguage":"JSONata","StartAt":"A","States":{"A":{"Type":"Succeed"}}}`, `def.QueryLanguage: Forbidden: JSONata is not served`},
		{"its fields", `{"StartAt":"A","States":{"A":{"Type":"Pass","Output":"{% $x %}","End":true}}}`, `def.States[A].Output: Forbidden: only JSONata`},
		{"ALL not last", `{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"f","Retry":[{"ErrorEquals":["States.ALL"]},{"ErrorEquals":["X"]}],"End":true}}}`, `Retry[0].ErrorEquals[0]: Invalid value`},
		{"an unknown error", `{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"f","Catch":[{"ErrorEquals":["States.Oops"],"Next":"B"}],"End":true},"B":{"Type":"Fail"}}}`, `Catch[0].ErrorEquals[0]: Unsupported value`},
		{"heartbeat", `{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"f","TimeoutSeconds":5,"HeartbeatSeconds":5,"End":true}}}`, `HeartbeatSeconds: Invalid value`},
		{"two times", `{"StartAt":"A","States":{"A":{"Type":"Wait","Seconds":5,"Timestamp":"2026-01-02T15:04:05Z","End":true}}}`, `a Wait state has one of`},
		{"one branch of two", `{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"f","Left":"A"}}}`, `def.States[A]: Required value: Left and Right belong together`},
		{"a name twice", `{"StartAt":"P","States":{"P":{"Type":"Parallel","End":true,"Branches":[{"StartAt":"P","States":{"P":{"Type":"Succeed"}}}]}}}`, `def.States[P].Branches[0].States[P]: Invalid value: "P": the name is another state's too: def.States[P]`},
		{"in a branch", `{"StartAt":"P","States":{"P":{"Type":"Parallel","End":true,"Branches":[{"StartAt":"X","States":{"Q":{"Type":"Succeed"}}}]}}}`, `def.States[P].Branches[0].StartAt: Invalid value: "X"`},
		{"distributed", `{"StartAt":"P","States":{"P":{"Type":"Map","End":true,"ItemProcessor":{"ProcessorConfig":{"Mode":"DISTRIBUTED"},"StartAt":"Q","States":{"Q":{"Type":"Succeed"}}}}}}`, `ProcessorConfig.Mode: Unsupported value: "DISTRIBUTED"`},
	} {
		_, errs := Parse([]byte(x.doc), field.NewPath("def"))
		if got := fmt.Sprint(errs.ToAggregate()); !strings.Contains(got, x.want) {
			t.Errorf("%s: %s", x.what, got)
		}
	}
	// All at once.
	_, errs := Parse([]byte(`{"StartAt":"A","States":{"A":{"Type":"Pass","Next":"X"},"B":{"Type":"Choice"},"C":{"Type":"Wait","End":true}}}`), nil)
	if len(errs) != 3 {
		t.Errorf("of three mistakes it names %d: %v", len(errs), errs)
	}
	if _, errs := Parse([]byte(strings.Repeat(`{"StartAt":"A","States":{"A":{"Type":"Parallel","Branches":[`, 50)), nil); len(errs) == 0 {
		t.Error("half a definition is accepted")
	}
}

// All 39 operators, with what is true, false and of another type.
func TestOperators(t *testing.T) {
	if len(Operators) != 39 {
		t.Fatalf("%d operators", len(Operators))
	}
	tested := map[string]bool{}
	const early, late = `"2016-03-14T01:59:00Z"`, `"2017-03-14T01:59:00+01:00"`
	for _, x := range []struct {
		operator, variable, operand string
		want                        bool
	}{
		{"IsNull", `null`, `true`, true}, {"IsNull", `1`, `true`, false}, {"IsNull", `1`, `false`, true},
		{"IsNumeric", `1.5`, `true`, true}, {"IsNumeric", `"1"`, `true`, false},
		{"IsString", `"a"`, `true`, true}, {"IsString", `1`, `true`, false},
		{"IsBoolean", `false`, `true`, true}, {"IsBoolean", `"false"`, `true`, false},
		{"IsTimestamp", early, `true`, true}, {"IsTimestamp", `"2016-03-14"`, `true`, false},
		{"IsPresent", `null`, `true`, true}, {"IsPresent", `1`, `false`, false},
		{"BooleanEquals", `true`, `true`, true}, {"BooleanEquals", `"true"`, `true`, false},
		{"StringEquals", `"a"`, `"a"`, true}, {"StringEquals", `1`, `"1"`, false},
		{"StringLessThan", `"a"`, `"b"`, true}, {"StringLessThan", `"b"`, `"b"`, false},
		{"StringGreaterThan", `"b"`, `"a"`, true}, {"StringGreaterThan", `"b"`, `"b"`, false},
		{"StringLessThanEquals", `"b"`, `"b"`, true}, {"StringLessThanEquals", `"c"`, `"b"`, false},
		{"StringGreaterThanEquals", `"b"`, `"b"`, true}, {"StringGreaterThanEquals", `"a"`, `"b"`, false},
		{"NumericEquals", `10`, `10.0`, true}, {"NumericEquals", `9007199254740993`, `9007199254740992`, false}, {"NumericEquals", `"10"`, `10`, false},
		{"NumericLessThan", `1`, `1.5`, true}, {"NumericLessThan", `2`, `2`, false},
		{"NumericGreaterThan", `2`, `1`, true}, {"NumericGreaterThan", `null`, `1`, false},
		{"NumericLessThanEquals", `2`, `2`, true}, {"NumericLessThanEquals", `3`, `2`, false},
		{"NumericGreaterThanEquals", `2`, `2`, true}, {"NumericGreaterThanEquals", `1`, `2`, false},
		{"TimestampEquals", `"2016-03-14T02:59:00+01:00"`, early, true}, {"TimestampEquals", late, early, false},
		{"TimestampLessThan", early, late, true}, {"TimestampLessThan", `"x"`, late, false},
		{"TimestampGreaterThan", late, early, true}, {"TimestampGreaterThan", early, early, false},
		{"TimestampLessThanEquals", early, early, true}, {"TimestampLessThanEquals", late, early, false},
		{"TimestampGreaterThanEquals", early, early, true}, {"TimestampGreaterThanEquals", early, late, false},
		{"StringMatches", `"zebra.log"`, `"*.log"`, true}, {"StringMatches", `"foo.log"`, `"foo*.log"`, true}, {"StringMatches", `"foo.logs"`, `"foo*.log"`, false},
		{"StringMatches", `"foo23.bar.log"`, `"foo*.bar*g"`, true}, {"StringMatches", `"a*b"`, `"a\\*b"`, true}, {"StringMatches", `"axb"`, `"a\\*b"`, false}, {"StringMatches", `1`, `"*"`, false},
	} {
		for _, suffix := range []string{"", "Path"} {
			operator, operand := x.operator+suffix, x.operand
			if suffix != "" {
				operand = `"$.w"`
			}
			if !slices.Contains(Operators, operator) {
				continue
			}
			tested[operator] = true
			m := parse(t, `{"StartAt":"C","States":{"C":{"Type":"Choice","Default":"no","Choices":[{"Variable":"$.v","`+operator+`":`+operand+`,"Next":"yes"}]},"yes":{"Type":"Succeed"},"no":{"Type":"Succeed"}}}`)
			got, err := m.States["C"].Choose(value(t, `{"v":`+x.variable+`,"w":`+x.operand+`}`), new(Context))
			if err != nil || (got == "yes") != x.want {
				t.Errorf("%s %s %s: %v %v", x.variable, operator, x.operand, got, err)
			}
		}
	}
	for _, name := range Operators {
		if !tested[name] {
			t.Error("not tested: ", name)
		}
	}
}

// The Choice of the developer guide, and what is not there.
func TestChoice(t *testing.T) {
	m := parse(t, `{"StartAt":"DispatchEvent","States":{"DispatchEvent":{"Type":"Choice","Choices":[
		{"Not":{"Variable":"$.type","StringEquals":"Private"},"Next":"Public"},
		{"And":[{"Variable":"$.value","IsPresent":true},{"Variable":"$.value","IsNumeric":true},{"Variable":"$.value","NumericGreaterThanEquals":20},{"Variable":"$.value","NumericLessThan":30}],"Next":"ValueInTwenties"},
		{"Or":[{"Variable":"$.x","IsPresent":true},{"Variable":"$.y","IsPresent":true}],"Next":"Some"}],
		"Default":"RecordEvent"},"Public":{"Type":"Succeed"},"ValueInTwenties":{"Type":"Succeed"},"RecordEvent":{"Type":"Succeed"},"Some":{"Type":"Succeed"}}}`)
	for input, want := range map[string]string{`{"type":"Public"}`: "Public", `{"type":"Private","value":22}`: "ValueInTwenties", `{"type":"Private","value":30}`: "RecordEvent",
		`{"type":"Private"}`: "RecordEvent", `{"type":"Private","y":null}`: "Some"} {
		if got, err := m.States["DispatchEvent"].Choose(value(t, input), new(Context)); err != nil || got != want {
			t.Errorf("%s: %q %v", input, got, err)
		}
	}
	if _, err := m.States["DispatchEvent"].Choose(value(t, `{}`), new(Context)); err == nil || err.Name != ErrRuntime {
		t.Errorf("a variable that is not there: %v", err)
	}
	m = parse(t, `{"StartAt":"C","States":{"C":{"Type":"Choice","Choices":[{"Variable":"$$.Execution.Name","StringEquals":"a","Next":"E"}]},"E":{"Type":"Succeed"}}}`)
	if _, err := m.States["C"].Choose(nil, &Context{Object: value(t, `{"Execution":{"Name":"b"}}`)}); err == nil || err.Name != ErrNoChoice {
		t.Errorf("no rule is true: %v", err)
	}
}

// What comes into a state and what leaves it, as the specification and the developer guide show it.
func TestInputAndOutput(t *testing.T) {
	for _, x := range []struct{ what, fields, input, result, effective, output string }{
		{"nothing said", ``, `{"a":1}`, `{"b":2}`, `{"a":1}`, `{"b":2}`},
		{"InputPath", `"InputPath":"$.dataset1"`, `{"comment":"x","dataset1":{"val1":1},"dataset2":2}`, `9`, `{"val1":1}`, `9`},
		{"InputPath null", `"InputPath":null`, `{"a":1}`, `9`, `{}`, `9`},
		{"ResultPath", `"ResultPath":"$.taskresult"`, `{"comment":"c","who":"w"}`, `"Hello"`, `{"comment":"c","who":"w"}`, `{"comment":"c","taskresult":"Hello","who":"w"}`},
		{"ResultPath of the specification", `"ResultPath":"$.master.detail"`, `{"master":{"detail":[1,2,3]}}`, `6`, `{"master":{"detail":[1,2,3]}}`, `{"master":{"detail":6}}`},
		{"ResultPath that is new", `"ResultPath":"$.master.result.sum"`, `{"master":{"detail":[1,2,3]}}`, `6`, `{"master":{"detail":[1,2,3]}}`, `{"master":{"detail":[1,2,3],"result":{"sum":6}}}`},
		{"ResultPath null", `"ResultPath":null`, `{"a":1}`, `9`, `{"a":1}`, `{"a":1}`},
		{"OutputPath", `"ResultPath":"$.r","OutputPath":"$.r.x"`, `{}`, `{"x":[1]}`, `{}`, `[1]`},
		{"OutputPath null", `"OutputPath":null`, `1`, `2`, `1`, `{}`},
		{"Parameters", `"Parameters":{"flagged":true,"parts":{"first.$":"$.vals[0]","last3.$":"$.vals[-3:]"}}`, `{"flagged":7,"vals":[0,10,20,30,40,50]}`, `1`, `{"flagged":true,"parts":{"first":0,"last3":[30,40,50]}}`, `1`},
		{"Parameters with $$", `"Parameters":{"id.$":"$$.Execution.Id","list":[{"n.$":"$.n"}]}`, `{"n":3}`, `1`, `{"id":"run","list":[{"n":3}]}`, `1`},
		{"ResultSelector", `"ResultSelector":{"ClusterId.$":"$.output.ClusterId","ResourceType.$":"$.resourceType"},"ResultPath":"$.EMROutput"`, `{"OtherDataFromInput":{}}`,
			`{"resourceType":"elasticmapreduce","output":{"ClusterId":"AKIAIOSFODNN7EXAMPLE","x":{"h":1}}}`, `{"OtherDataFromInput":{}}`, `{"EMROutput":{"ClusterId":"AKIAIOSFODNN7EXAMPLE","ResourceType":"elasticmapreduce"},"OtherDataFromInput":{}}`},
		{"a filter", `"Parameters":{"cheap.$":"$.book[?(@.price < 10)].title"}`, `{"book":[{"title":"a","price":9},{"title":"b","price":11}]}`, `0`, `{"cheap":["a"]}`, `0`},
		{"a name with a dash", `"InputPath":"$.a-b.c"`, `{"a-b":{"c":1}}`, `0`, `1`, `0`},
		{"big numbers", `"InputPath":"$.n"`, `{"n":9007199254740993}`, `0`, `9007199254740993`, `0`},
	} {
		s := one(t, `"Type":"Task","Resource":"f","End":true`+strings.TrimSuffix(","+x.fields, ","))
		ctx, input := &Context{Object: value(t, `{"Execution":{"Id":"run"}}`)}, value(t, x.input)
		effective, err := s.Input(input, ctx)
		if err != nil || encoded(t, effective) != x.effective {
			t.Errorf("%s: it works with %s, %v", x.what, encoded(t, effective), err)
		}
		output, err := s.Output(input, value(t, x.result), ctx)
		if err != nil || encoded(t, output) != x.output {
			t.Errorf("%s: it passes on %s, %v", x.what, encoded(t, output), err)
		}
		if encoded(t, input) != encoded(t, value(t, x.input)) {
			t.Errorf("%s: the input has been changed", x.what)
		}
	}
	s := one(t, `"Type":"Task","Resource":"f","End":true,"ResultPath":"$.a.b","OutputPath":"$.none"`)
	if _, err := s.Output(value(t, `{"a":1}`), 1, new(Context)); err == nil || err.Name != ErrResultPath {
		t.Errorf("a place in a number: %v", err)
	}
	if _, err := s.Output(value(t, `{}`), 1, new(Context)); err == nil || err.Name != ErrRuntime {
		t.Errorf("an OutputPath that names nothing: %v", err)
	}
	s = one(t, `"Type":"Pass","End":true,"Parameters":{"x.$":"$.none"}`)
	if _, err := s.Input(value(t, `{}`), new(Context)); err == nil || err.Name != ErrParameterPath {
		t.Errorf("a parameter that names nothing: %v", err)
	}
}

// The examples of the developer guide's page of intrinsic functions.
func TestIntrinsicFunctions(t *testing.T) {
	for _, x := range []struct{ call, input, want string }{
		{`States.Array($.Id)`, `{"Id":123456}`, `[123456]`},
		{`States.ArrayPartition($.inputArray,4)`, `{"inputArray":[1,2,3,4,5,6,7,8,9]}`, `[[1,2,3,4],[5,6,7,8],[9]]`},
		{`States.ArrayContains($.inputArray, $.lookingFor)`, `{"inputArray":[1,2,3,4,5],"lookingFor":5}`, `true`},
		{`States.ArrayRange(1, 9, 2)`, `{}`, `[1,3,5,7,9]`},
		{`States.ArrayGetItem($.inputArray, $.index)`, `{"inputArray":[1,2,3],"index":1}`, `2`},
		{`States.ArrayLength($.inputArray)`, `{"inputArray":[1,2,3]}`, `3`},
		{`States.ArrayUnique($.inputArray)`, `{"inputArray":[1,2,3,3,3,3,3,3,4]}`, `[1,2,3,4]`},
		{`States.Base64Encode($.input)`, `{"input":"Data to encode"}`, `"RGF0YSB0byBlbmNvZGU="`},
		{`States.Base64Decode($.base64)`, `{"base64":"RGVjb2RlZCBkYXRh"}`, `"Decoded data"`},
		{`States.Hash($.Data, $.Algorithm)`, `{"Data":"input data","Algorithm":"SHA-1"}`, `"aaff4a450a104cd177d28d18d74485e8cae074b7"`},
		{`States.JsonMerge($.json1, $.json2, false)`, `{"json1":{"a":{"a1":1,"a2":2},"b":2},"json2":{"a":{"a3":1,"a4":2},"c":3}}`, `{"a":{"a3":1,"a4":2},"b":2,"c":3}`},
		{`States.StringToJson($.escapedJsonString)`, `{"escapedJsonString":"{\"foo\": \"bar\"}"}`, `{"foo":"bar"}`},
		{`States.JsonToString($.unescapedJson)`, `{"unescapedJson":{"foo":"bar"}}`, `"{\"foo\":\"bar\"}"`},
		{`States.MathAdd($.value1, $.step)`, `{"value1":111,"step":-1}`, `110`},
		{`States.StringSplit($.inputString, $.splitter)`, `{"inputString":"1,2,3,4,5","splitter":","}`, `["1","2","3","4","5"]`},
		{`States.StringSplit($.inputString, $.splitter)`, `{"inputString":"This.is+a,test=string","splitter":".+,="}`, `["This","is","a","test","string"]`},
		{`States.Format('Hello, my name is {}.', $.name)`, `{"name":"Arnav"}`, `"Hello, my name is Arnav."`},
		{`States.Format('{} is \{{}\}', 'it\'s', 1.5)`, `{}`, `"it's is {1.5}"`},
		{`States.Format('{}', States.ArrayGetItem(States.Array('a', null, true), 0))`, `{}`, `"a"`},
		{`States.Format('{}', $['a, b'])`, `{"a, b":"x"}`, `"x"`},
	} {
		from, err := parseExpression(x.call)
		if err != nil {
			t.Errorf("%s: %v", x.call, err)
			continue
		}
		got, failed := from.eval(value(t, x.input), &Context{})
		if failed != nil || encoded(t, got) != x.want {
			t.Errorf("%s: %s, %v", x.call, encoded(t, got), failed)
		}
	}
	for _, bad := range []string{`States.Format()`, `States.Format('a'`, `States.Format('a)`, `Format('a')`, `States.MathAdd(1)`, `States.UUID() x`, `States.Array(1 2)`, ``} {
		if _, err := parseExpression(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	for _, bad := range []string{`States.Format('{}')`, `States.Format('a', 1)`, `States.ArrayGetItem(States.Array(), 0)`, `States.ArrayRange(0, 100000, 1)`, `States.JsonMerge($, $, true)`, `States.MathRandom(3, 1)`, `States.MathRandom(-9223372036854775807, 9223372036854775807)`, `States.StringToJson('{')`} {
		from, err := parseExpression(bad)
		if err != nil {
			t.Error(bad, err)
			continue
		}
		if v, failed := from.eval(map[string]any{}, &Context{}); failed == nil || failed.Name != ErrIntrinsic {
			t.Errorf("%s: %v %v", bad, v, failed)
		}
	}
	for _, x := range []struct{ call, want string }{ // whole numbers have an end
		{`States.MathAdd(9223372036854775807, 1)`, ""}, {`States.MathAdd(-9223372036854775807, -2)`, ""}, {`States.MathAdd(9223372036854775806, 1)`, `9223372036854775807`},
		{`States.MathAdd(1e19, 1)`, ""}, {`States.MathAdd(9223372036854775807, 0)`, `9223372036854775807`}, {`States.ArrayRange(9223372036854775806, 9223372036854775807, 1)`, `[9223372036854775806,9223372036854775807]`},
		{`States.ArrayGetItem(States.Array(1), 1e300)`, ""},
	} {
		from, err := parseExpression(x.call)
		if err != nil {
			t.Error(x.call, err)
			continue
		}
		got, failed := from.eval(nil, &Context{})
		if (failed == nil) != (x.want != "") || failed == nil && encoded(t, got) != x.want || failed != nil && failed.Name != ErrIntrinsic {
			t.Errorf("%s: %v, %v", x.call, got, failed)
		}
	}
	// What is random is the same for the same step, and differs from the next.
	from, _ := parseExpression(`States.Array(States.UUID(), States.UUID(), States.MathRandom(0, 1000000))`)
	a, _ := from.eval(nil, &Context{Random: "1"})
	b, _ := from.eval(nil, &Context{Random: "1"})
	c, _ := from.eval(nil, &Context{Random: "2"})
	if encoded(t, a) != encoded(t, b) || encoded(t, a) == encoded(t, c) || a.([]any)[0] == a.([]any)[1] {
		t.Errorf("random: %v %v %v", a, b, c)
	}
	state, of := one(t, `"Type":"Pass","End":true,"Parameters":{"a.$":"States.UUID()","b":[{"c.$":"States.UUID()"}],"d.$":"States.Format('{}', States.UUID())"}`), &Context{Random: "1"}
	v, failed := state.Input(nil, of)
	first, second, third := fmt.Sprint(v.(map[string]any)["a"]), fmt.Sprint(v.(map[string]any)["b"].([]any)[0].(map[string]any)["c"]), fmt.Sprint(v.(map[string]any)["d"])
	if again, _ := state.Input(nil, &Context{Random: "1"}); failed != nil || first == second || second == third || first == third || encoded(t, again) != encoded(t, v) {
		t.Errorf("of one state: %v", v)
	}
}

// Retry and Catch, as the specification's examples have them.
func TestRetryAndCatch(t *testing.T) {
	m := parse(t, `{"StartAt":"X","States":{"X":{"Type":"Task","Resource":"arn:aws:lambda:us-east-1:123456789012:function:X","End":true,
		"Retry":[{"ErrorEquals":["ErrorA","ErrorB"],"IntervalSeconds":1,"BackoffRate":2,"MaxAttempts":2},{"ErrorEquals":["ErrorC"],"IntervalSeconds":5,"MaxDelaySeconds":8},{"ErrorEquals":["Never"],"MaxAttempts":0}],
		"Catch":[{"ErrorEquals":["ErrorA"],"ResultPath":"$.error-info","Next":"Z"},{"ErrorEquals":["States.ALL"],"Next":"Z"}]},"Z":{"Type":"Pass","End":true}}}`)
	s := m.States["X"]
	if s.Function != "X" {
		t.Errorf("the function is %q", s.Function)
	}
	tried := map[int]int{}
	for i, x := range []struct {
		err   string
		delay time.Duration // 0: caught
	}{{"ErrorA", time.Second}, {"ErrorB", 2 * time.Second}, {"ErrorC", 5 * time.Second}, {"ErrorC", 8 * time.Second}, {"ErrorA", 0}, {"Never", 0}} {
		h, err := s.Handle(&Error{Name: x.err, Cause: "why"}, map[string]any{"a": 1}, tried, "k")
		if err != nil || h.Again != (x.delay > 0) || h.Delay != x.delay {
			t.Fatalf("%d: %+v %v", i, h, err)
		}
		if h.Again {
			tried[h.Retrier]++
		} else if x.err == "ErrorA" && encoded(t, h.Output) != `{"a":1,"error-info":{"Cause":"why","Error":"ErrorA"}}` || h.Next != "Z" {
			t.Errorf("caught: %+v", h)
		}
	}
	for _, x := range []struct {
		names []string
		err   Error
		want  bool
	}{{[]string{ErrAll}, Error{Name: "X"}, true}, {[]string{ErrAll}, Error{Name: ErrRuntime}, false}, {[]string{ErrTaskFailed}, Error{Name: ErrTimeout}, false}, {[]string{ErrTaskFailed}, Error{Name: "KeyError"}, true},
		{[]string{ErrTimeout}, Error{Name: ErrHeartbeat}, true}, {[]string{ErrBranchFailed}, Error{Name: "X", Branch: true}, true}, {[]string{ErrBranchFailed}, Error{Name: "X"}, false}, {[]string{ErrRuntime}, Error{Name: ErrRuntime}, false}} {
		if handles(x.names, &x.err) != x.want {
			t.Errorf("%v handles %+v: %v", x.names, x.err, !x.want)
		}
	}
}

// When a Wait ends, and how long a Task may take.
func TestTimes(t *testing.T) {
	entered := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for fields, want := range map[string]time.Time{
		`"Seconds":10`:                       entered.Add(10 * time.Second),
		`"SecondsPath":"$.n"`:                entered.Add(1500 * time.Millisecond),
		`"Timestamp":"2016-03-14T01:59:00Z"`: time.Date(2016, 3, 14, 1, 59, 0, 0, time.UTC),
		`"TimestampPath":"$.t"`:              time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		got, err := one(t, `"Type":"Wait","End":true,`+fields).Until(entered, value(t, `{"n":1.5,"t":"2030-01-01T00:00:00Z"}`), new(Context))
		if err != nil || !got.Equal(want) {
			t.Errorf("%s: %v %v", fields, got, err)
		}
	}
	if _, err := one(t, `"Type":"Wait","End":true,"SecondsPath":"$.n"`).Until(entered, value(t, `{"n":-1}`), new(Context)); err == nil {
		t.Error("it waits less than no time")
	}
	limit, late, err := one(t, `"Type":"Task","Resource":"f","End":true,"TimeoutSecondsPath":"$.n","HeartbeatSeconds":2`).Limit(value(t, `{"n":3}`), new(Context))
	if err != nil || limit != 2*time.Second || late.Name != ErrHeartbeat {
		t.Errorf("%v %v %v", limit, late, err)
	}
}

// The rules as people read them.
func TestRuleText(t *testing.T) {
	for rule, want := range map[string]string{
		`{"Variable":"$.x","NumericEquals":10,"Next":"A"}`:                                                        `x == 10`,
		`{"Not":{"Variable":"$.x","NumericEquals":10},"Next":"A"}`:                                                `x != 10`,
		`{"Variable":"$.s","StringMatches":"a*","Next":"A"}`:                                                      `s StringMatches "a*"`,
		`{"And":[{"Variable":"$.x","NumericLessThan":1},{"Variable":"$.y","StringEqualsPath":"$.z"}],"Next":"A"}`: `(x < 1 and y == $.z)`,
		`{"Not":{"Or":[{"Variable":"$.x","IsNull":true},{"Variable":"$.y","BooleanEquals":true}]},"Next":"A"}`:    `not (x IsNull true or y == true)`,
		`{"Variable":"$.x","NumericLessThanEquals":1,"Next":"A"}`:                                                 `x <= 1`,
	} {
		m := parse(t, `{"StartAt":"C","States":{"C":{"Type":"Choice","Choices":[`+rule+`]},"A":{"Type":"Succeed"}}}`)
		if got := m.States["C"].Choices[0].Text(); got != want {
			t.Errorf("%s: %s", rule, got)
		}
	}
}

// Nothing that people write may make the reader panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"StartAt":"A","States":{"A":{"Type":"Choice","Choices":[{"And":[{"Variable":"$.x","IsNull":true}],"Next":"A"}]}}}`))
	f.Add([]byte(`{"StartAt":"A","States":{"A":{"Type":"Pass","Parameters":{"a.$":"States.Format('{}', $.x[?(@.y)])"},"End":true}}}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		m, errs := Parse(data, nil)
		if m == nil || len(errs) > 0 {
			return
		}
		m.Walk(func(s *State) {
			for _, v := range []any{nil, map[string]any{"x": []any{int64(1)}}} {
				if in, err := s.Input(v, &Context{}); err == nil {
					s.Output(v, in, &Context{}) //nolint:errcheck // it may fail
				}
			}
		})
	})
}
