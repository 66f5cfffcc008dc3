package minik8s

import (
	"encoding/json"
	"testing"
)

// A value that is written and read again is the same bytes, and is the same value.
func TestJSONIsTheSameAgain(t *testing.T) {
	for written, want := range map[string]string{
		`1`:                      `1`,
		`{"a": [1,  2]}`:         `{"a":[1,2]}`,
		`"a<b>c&d"`:              `"a<b>c&d"`,
		`"\u003c\u003e\u0026"`:   `"<>&"`,
		`"\\u003c\u0041\""`:      `"\\u003c\u0041\""`,
		`"\\\u003c"`:             `"\\<"`,
		`"\u003C"`:               `"\u003C"`,
		"\"\u2028\u2029\u2030\"": "\"\\u2028\\u2029\u2030\"",
		`{"<":{"&":"\u0026"}}`:   `{"<":{"&":"&"}}`,
	} {
		var first, again JSON
		if err := json.Unmarshal([]byte(written), &first); err != nil {
			t.Fatal(written, err)
		}
		data, err := json.Marshal(struct{ X JSON }{first})
		if err != nil {
			t.Fatal(written, err)
		}
		var back struct{ X JSON }
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(written, err)
		}
		again = back.X
		if string(first.Raw) != want || string(again.Raw) != want {
			t.Errorf("%s is %s, and then %s", written, first.Raw, again.Raw)
		}
		var a, b any
		if json.Unmarshal([]byte(written), &a) != nil || json.Unmarshal(again.Raw, &b) != nil {
			t.Fatal(written)
		}
		x, _ := json.Marshal(a) //nolint:errcheck // it was JSON
		y, _ := json.Marshal(b) //nolint:errcheck // it was JSON
		if string(x) != string(y) {
			t.Errorf("%s has become %s", x, y)
		}
	}
}
