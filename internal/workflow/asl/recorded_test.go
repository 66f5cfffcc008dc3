package asl

import (
	"fmt"
	"testing"
	"time"
)

// What AWS gives: answers of the service that others have recorded in public, and examples of its documentation. Where we differ on purpose, the
// row says so.

func TestFunctionsAsRecorded(t *testing.T) {
	for _, x := range []struct{ call, input, want string }{
		{`States.MathAdd($.a, $.b)`, `{"a":-9,"b":3}`, `-6`},
		{`States.MathAdd($.a, $.b)`, `{"a":1.49,"b":1.5}`, `3`},
		{`States.MathAdd($.a, $.b)`, `{"a":1.5,"b":1.51}`, `4`},
		{`States.MathAdd($.a, $.b)`, `{"a":-1.49,"b":-1.5}`, `-2`},
		{`States.MathAdd($.a, $.b)`, `{"a":-1.5,"b":-1.51}`, `-3`},
		{`States.MathAdd($.a, $.b)`, `{"a":-0.5,"b":0.5}`, `1`},
		{`States.MathAdd($.a, 0)`, `{"a":2.5}`, `3`},
		{`States.MathAdd($.a, 0)`, `{"a":-2.5}`, `-2`},
		{`States.MathAdd($.a, 0)`, `{"a":-1.51}`, `-2`},
		{`States.ArrayRange(0, 9, 3)`, `{}`, `[0,3,6,9]`},
		{`States.ArrayRange(0, 10, 3)`, `{}`, `[0,3,6,9]`},
		{`States.ArrayRange(1, 9, 9)`, `{}`, `[1]`},
		{`States.ArrayRange(0.6, 2.4, 1)`, `{}`, `[1,2]`},
		{`States.ArrayPartition($.l, 2)`, `{"l":[]}`, `[]`},
		{`States.ArrayPartition($.l, 5)`, `{"l":[0]}`, `[[0]]`},
		{`States.ArrayPartition($.l, 2)`, `{"l":[0,1,2]}`, `[[0,1],[2]]`},
		{`States.ArrayPartition($.l, 2.5)`, `{"l":[0,1,2,3]}`, `[[0,1,2],[3]]`},
		{`States.ArrayContains($.l, $.x)`, `{"l":[],"x":null}`, `false`},
		{`States.ArrayContains($.l, $.x)`, `{"l":[[1,2,3],2],"x":[1,2,3]}`, `true`},
		{`States.ArrayContains($.l, $.x)`, `{"l":[{"1":2,"2":[]}],"x":{"2":[],"1":2}}`, `true`},
		{`States.ArrayContains($.l, $.x)`, `{"l":[true,false],"x":false}`, `true`},
		{`States.ArrayUnique($.l)`, `{"l":[null,null,true,true,false,1,1,1.1,0,0,"a","a",[],[],[null],[null],{"a":1,"b":2},{"b":2,"a":1},{"a":1,"b":1}]}`, `[null,true,false,1,1.1,0,"a",[],[null],{"a":1,"b":2},{"a":1,"b":1}]`},
		{`States.Array()`, `{}`, `[]`},
		{`States.Array($.a, $.a)`, `{"a":{"Arg1":1,"Arg2":[]}}`, `[{"Arg1":1,"Arg2":[]},{"Arg1":1,"Arg2":[]}]`},
		{`States.StringSplit($.s, ',')`, `{"s":" "}`, `[" "]`},
		{`States.StringSplit($.s, ',')`, `{"s":", , ,"}`, `[" "," "]`},
		{`States.StringSplit($.s, ',')`, `{"s":",,,,"}`, `[]`},
		{`States.StringSplit($.s, $.by)`, `{"s":"split on T and \nnew line","by":"T\n"}`, `["split on "," and ","new line"]`},
		{`States.Format('Formatting argument {}.', $.a)`, `{"a":null}`, `"Formatting argument null."`},
		{`States.Format('Formatting argument {}.', $.a)`, `{"a":1.1}`, `"Formatting argument 1.1."`},
		{`States.Format('Formatting argument {}.', $.a)`, `{"a":""}`, `"Formatting argument ."`},
		{`States.Format('{}', $.a)`, `{"a":{"Arg1":1,"Arg2":[]}}`, `"{\"Arg1\":1,\"Arg2\":[]}"`}, // there {Arg1=1, Arg2=[]}, which nobody can read again
		{`States.StringToJson($.s)`, `{"s":""}`, `null`},
		{`States.StringToJson($.s)`, `{"s":" "}`, `null`},
		{`States.StringToJson($.s)`, `{"s":"-0"}`, `0`},
		{`States.StringToJson($.s)`, `{"s":"\"HelloWorld\""}`, `"HelloWorld"`},
		{`States.StringToJson('{"text":"a \"quoted\" word"}')`, `{}`, ``},
		{`States.JsonToString($.v)`, `{"v":[1,2,"HelloWorld"]}`, `"[1,2,\"HelloWorld\"]"`},
		{`States.JsonToString($.v)`, `{"v":null}`, `"null"`},
		{`States.JsonMerge($.a, $.b, false)`, `{"a":{"a":{"a1":1,"a2":2},"b":2,"d":3},"b":{"a":{"a3":1,"a4":2},"c":3,"d":4}}`, `{"a":{"a3":1,"a4":2},"b":2,"c":3,"d":4}`},
		{`States.Base64Encode('')`, `{}`, `""`},
		{`States.Base64Decode('')`, `{}`, `""`},
		{`States.Hash('input data', 'MD5')`, `{}`, `"812f45842bc6d66ee14572ce20db8e86"`},
		{`States.Hash('input data', 'SHA-256')`, `{}`, `"b4a697a057313163aee33cd8d40c66e9f0f177e00cac2de32475ffff6169c3e3"`},
		{`States.Hash('input data', 'SHA-384')`, `{}`, `"d28a7d5cf25a74f11a50a18452b75e04bb3d70c9dd0510d6123aa008c756511b87525bdc835ebb27e1fb9e9374a15562"`},
		{`States.Hash('input data', 'SHA-512')`, `{}`, `"6ce4adb348546d4f449c4d25aad9a7c9cb711d9e91982d3f0b29ca2f3f47d4ce2deba23bf2954f0f1d593fc50283731a533d30d425402d4f91316d871303aac4"`},
		{`$['Test\\""Name"']`, `{"Test\\\"\"Name\"":"Value\"\\"}`, `"Value\"\\"`},
	} {
		from, err := parseExpression(x.call)
		if err != nil {
			t.Errorf("%s: %v", x.call, err)
			continue
		}
		got, failed := from.eval(value(t, x.input), &Context{})
		if x.want == "" {
			if failed == nil || failed.Name != ErrIntrinsic {
				t.Errorf("%s of %s: %s, %v", x.call, x.input, encoded(t, got), failed)
			}
		} else if failed != nil || encoded(t, got) != x.want {
			t.Errorf("%s of %s: %s, %v", x.call, x.input, encoded(t, got), failed)
		}
	}
	for _, x := range []struct {
		call     string
		from, to int64
	}{{`States.MathRandom(12.5, 44.51)`, 13, 45}, {`States.MathRandom(-99999, -9999)`, -99999, -9999}, {`States.MathRandom(0, 999, 3)`, 0, 999}} {
		from, err := parseExpression(x.call)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			v, failed := from.eval(nil, &Context{Random: fmt.Sprint(i)})
			if n, ok := v.(int64); failed != nil || !ok || n < x.from || n >= x.to {
				t.Fatalf("%s: %v %v", x.call, v, failed)
			}
		}
	}
}

// A comparison of values of other types is false and no error; what is there of each type is known.
func TestTypesAsRecorded(t *testing.T) {
	all := []string{`null`, `0`, `0.0`, `1`, `1.1`, `""`, `" "`, `"HelloWorld"`, `"2012-10-09T19:00:55"`, `"2012-10-09T19:00:55Z"`, `"2012-10-09T19:00:55+01:00"`, `"2023-02-24"`, `[]`, `[""]`, `{}`, `{"A":0}`, `true`, `false`}
	for _, x := range []struct {
		operator, operand string
		holds             map[string]bool
	}{
		{"IsNull", `true`, map[string]bool{`null`: true}},
		{"IsBoolean", `true`, map[string]bool{`true`: true, `false`: true}},
		{"IsNumeric", `true`, map[string]bool{`0`: true, `0.0`: true, `1`: true, `1.1`: true}},
		{"IsString", `true`, map[string]bool{`""`: true, `" "`: true, `"HelloWorld"`: true, `"2012-10-09T19:00:55"`: true, `"2012-10-09T19:00:55Z"`: true, `"2012-10-09T19:00:55+01:00"`: true, `"2023-02-24"`: true}},
		{"IsTimestamp", `true`, map[string]bool{`"2012-10-09T19:00:55Z"`: true, `"2012-10-09T19:00:55+01:00"`: true}},
		{"BooleanEquals", `true`, map[string]bool{`true`: true}},
		{"BooleanEquals", `false`, map[string]bool{`false`: true}},
		{"StringEquals", `"HelloWorld"`, map[string]bool{`"HelloWorld"`: true}},
		{"NumericEquals", `0`, map[string]bool{`0`: true, `0.0`: true}},
		{"NumericGreaterThan", `0`, map[string]bool{`1`: true, `1.1`: true}},
		{"TimestampEquals", `"2012-10-09T18:00:55Z"`, map[string]bool{`"2012-10-09T19:00:55+01:00"`: true}},
		{"TimestampGreaterThanEquals", `"2012-10-09T18:00:55Z"`, map[string]bool{`"2012-10-09T19:00:55+01:00"`: true, `"2012-10-09T19:00:55Z"`: true}},
		{"StringMatches", `"*"`, map[string]bool{`""`: true, `" "`: true, `"HelloWorld"`: true, `"2012-10-09T19:00:55"`: true, `"2012-10-09T19:00:55Z"`: true, `"2012-10-09T19:00:55+01:00"`: true, `"2023-02-24"`: true}},
	} {
		m := parse(t, `{"StartAt":"C","States":{"C":{"Type":"Choice","Default":"no","Choices":[{"Variable":"$.v","`+x.operator+`":`+x.operand+`,"Next":"yes"}]},"yes":{"Type":"Succeed"},"no":{"Type":"Succeed"}}}`)
		for _, v := range all {
			got, err := m.States["C"].Choose(value(t, `{"v":`+v+`}`), &Context{})
			if err != nil || (got == "yes") != x.holds[v] {
				t.Errorf("%s %s %s: %s %v", v, x.operator, x.operand, got, err)
			}
		}
	}
}

// States whose paths name nothing, or not what they should.
func TestErrorsAsRecorded(t *testing.T) {
	input := value(t, `{"int-literal":0,"t":"2016-12-05T21:29:29Z","bad":["2016-12-05 21:29:29Z","2016-12-05T21:29:29","2016-13-05T21:29:29Z","2016-12-05T25:29:29Z","05-12-2016T21:29:29Z"]}`)
	for fields, want := range map[string]string{
		`"Type":"Pass","InputPath":"$.none","End":true`:                                                               ErrRuntime,
		`"Type":"Pass","OutputPath":"$.none","End":true`:                                                              ErrRuntime,
		`"Type":"Pass","Parameters":{"v.$":"$.none"},"End":true`:                                                      ErrParameterPath, // the service says States.Runtime, its documentation and the specification this
		`"Type":"Pass","Parameters":{"v.$":"$$.Execution.Input.none"},"End":true`:                                     ErrParameterPath,
		`"Type":"Fail","ErrorPath":"$.none"`:                                                                          ErrRuntime,
		`"Type":"Fail","CausePath":"$.none"`:                                                                          ErrRuntime,
		`"Type":"Task","Resource":"f","TimeoutSecondsPath":"$.none","End":true`:                                       ErrRuntime,
		`"Type":"Task","Resource":"f","HeartbeatSecondsPath":"$.none","End":true`:                                     ErrRuntime,
		`"Type":"Wait","TimestampPath":"$.bad[0]","End":true`:                                                         ErrRuntime,
		`"Type":"Wait","TimestampPath":"$.bad[1]","End":true`:                                                         ErrRuntime,
		`"Type":"Wait","TimestampPath":"$.bad[2]","End":true`:                                                         ErrRuntime,
		`"Type":"Wait","TimestampPath":"$.bad[3]","End":true`:                                                         ErrRuntime,
		`"Type":"Wait","TimestampPath":"$.bad[4]","End":true`:                                                         ErrRuntime,
		`"Type":"Wait","TimestampPath":"$.t","End":true`:                                                              "",
		`"Type":"Wait","SecondsPath":"$.t","End":true`:                                                                ErrRuntime,
		`"Type":"Map","ItemsPath":"$.t","ItemProcessor":{"StartAt":"X","States":{"X":{"Type":"Succeed"}}},"End":true`: ErrRuntime,
		`"Type":"Choice","Choices":[{"Variable":"$.none","IsNull":true,"Next":"S"}],"Default":"S"`:                    ErrRuntime,
	} {
		doc := `{"StartAt":"S","States":{"S":{` + fields + `}}}`
		m, errs := Parse([]byte(doc), nil)
		if m == nil || m.States["S"] == nil {
			t.Fatal(fields, errs)
		}
		s, c := m.States["S"], &Context{Object: map[string]any{"Execution": map[string]any{"Input": input}}}
		err := func() *Error {
			effective, err := s.Input(input, c)
			if err != nil {
				return err
			}
			switch s.Type {
			case Fail:
				return s.Failure(effective, c)
			case Wait:
				_, err = s.Until(time.Now(), effective, c)
			case Task:
				_, _, err = s.Limit(effective, c)
			case Map:
				_, err = s.Items(effective, c)
			case Choice:
				_, err = s.Choose(effective, c)
			default:
				_, err = s.Output(input, s.PassResult(effective), c)
			}
			return err
		}()
		if name(err) != want {
			t.Errorf("%s: %v", fields, err)
		}
		if want == ErrRuntime && (handles([]string{ErrRuntime}, err) || handles([]string{ErrAll}, err)) {
			t.Errorf("%s: it is handled, where at AWS nothing handles it", fields)
		}
	}
	for _, bad := range []string{"2016-12-05 21:29:29Z", "2016-12-05T21:29:29", "2016-13-05T21:29:29Z", "2016-12-05T25:29:29Z", "05-12-2016T21:29:29Z"} {
		if _, errs := Parse([]byte(`{"StartAt":"S","States":{"S":{"Type":"Wait","Timestamp":"`+bad+`","End":true}}}`), nil); len(errs) != 1 {
			t.Errorf("%s is taken as a time: %v", bad, errs)
		}
	}
}
