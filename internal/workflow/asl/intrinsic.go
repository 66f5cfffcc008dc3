package asl

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"minik8s/internal/suggest"
)

// call is an intrinsic function with its arguments.
type call struct {
	name string
	args []expression
}

// maxNested is how deep calls may lie in calls.
const maxNested = 10

// intrinsics are the functions, with the least and the most arguments; -1: any number. What they make is measured when it is made. Those that
// go through all of a value measure that first.
var intrinsics = map[string]struct {
	least, most int
	do          func(c *Context, args []any) (any, error)
}{
	"States.Format":         {1, -1, format},
	"States.StringToJson":   {1, 1, stringToJSON},
	"States.JsonToString":   {1, 1, jsonToString},
	"States.Array":          {0, -1, func(_ *Context, a []any) (any, error) { return slices.Clone(a), nil }},
	"States.ArrayPartition": {2, 2, arrayPartition},
	"States.ArrayContains":  {2, 2, arrayContains},
	"States.ArrayRange":     {3, 3, arrayRange},
	"States.ArrayGetItem":   {2, 2, arrayGetItem},
	"States.ArrayLength":    {1, 1, arrayLength},
	"States.ArrayUnique":    {1, 1, arrayUnique},
	"States.Base64Encode":   {1, 1, base64Encode},
	"States.Base64Decode":   {1, 1, base64Decode},
	"States.Hash":           {2, 2, hash},
	"States.JsonMerge":      {3, 3, jsonMerge},
	"States.MathRandom":     {2, 3, mathRandom},
	"States.MathAdd":        {2, 2, mathAdd},
	"States.StringSplit":    {2, 2, stringSplit},
	"States.UUID":           {0, 0, uuid},
}

func (f *call) eval(input any, c *Context) (any, *Error) {
	args := make([]any, len(f.args))
	for i, a := range f.args {
		v, err := a.eval(input, c)
		if err != nil {
			return nil, err
		}
		args[i] = v
	}
	v, err := intrinsics[f.name].do(c, args)
	switch {
	case c.over != nil:
	case err != nil:
		return nil, errorf(ErrIntrinsic, "%s: %v", f.name, err)
	case c.makes(v):
		return v, nil
	}
	return nil, c.over
}

// random is another seed for each random value of an evaluation.
func (c *Context) random() string {
	c.drawn++
	return fmt.Sprintf("%s %d", c.Random, c.drawn)
}

// reader reads an intrinsic function.
type reader struct {
	text string
	at   int
}

func parseIntrinsic(text string) (expression, error) {
	r := &reader{text: text}
	out, err := r.call(1)
	if err != nil {
		return nil, err
	}
	if r.space(); r.at < len(r.text) {
		return nil, fmt.Errorf("there is more after the function: %q", r.text[r.at:])
	}
	return out, nil
}

func (r *reader) space() {
	for r.at < len(r.text) && r.text[r.at] == ' ' {
		r.at++
	}
}

func (r *reader) next(c byte) bool {
	r.space()
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

func (r *reader) word(part func(rune) bool) string {
	from := r.at
	for r.at < len(r.text) && part(rune(r.text[r.at])) {
		r.at++
	}
	return r.text[from:r.at]
}

func (r *reader) call(depth int) (expression, error) {
	if depth > maxNested {
		return nil, fmt.Errorf("functions may lie %d deep", maxNested)
	}
	r.space()
	name := r.word(func(c rune) bool { return c == '.' || c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) })
	f, ok := intrinsics[name]
	if !ok {
		why := fmt.Sprintf("expected a path that begins with $, or an intrinsic function, and not %q", name)
		if near := suggest.Nearest(name, sorted(intrinsics)); len(near) > 0 {
			why += "; did you mean " + join(near) + "?"
		}
		return nil, fmt.Errorf("%s", why)
	}
	if !r.next('(') {
		return nil, fmt.Errorf("expected ( after %s", name)
	}
	out := &call{name: name}
	for first := true; !r.next(')'); first = false {
		if !first && !r.next(',') {
			return nil, fmt.Errorf("expected , or ) in %s at %q", name, r.text[r.at:])
		}
		arg, err := r.argument(depth)
		if err != nil {
			return nil, err
		}
		out.args = append(out.args, arg)
	}
	if n := len(out.args); n < f.least || f.most >= 0 && n > f.most {
		return nil, fmt.Errorf("%s does not take %d arguments", name, n)
	}
	return out, nil
}

func (r *reader) argument(depth int) (expression, error) {
	r.space()
	if r.at >= len(r.text) {
		return nil, fmt.Errorf("it ends early")
	}
	switch c := r.text[r.at]; {
	case c == '\'':
		return r.quoted()
	case c == '$':
		return r.path()
	case c == '-' || unicode.IsDigit(rune(c)):
		word := r.word(func(c rune) bool { return strings.ContainsRune("+-.eE", c) || unicode.IsDigit(c) })
		v, err := Decode([]byte(word))
		if err != nil {
			return nil, fmt.Errorf("%q is no number", word)
		}
		return constant{v}, nil
	}
	from := r.at
	switch r.word(unicode.IsLetter) {
	case "true":
		return constant{true}, nil
	case "false":
		return constant{false}, nil
	case "null":
		return constant{nil}, nil
	}
	r.at = from
	return r.call(depth + 1)
}

// quoted is a text in single quotes, in which a backslash is before a quote, a brace or a backslash.
func (r *reader) quoted() (expression, error) {
	var b strings.Builder
	for r.at++; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '\\' && r.at+1 < len(r.text):
			r.at++
			if e := r.text[r.at]; e == '{' || e == '}' {
				b.WriteByte('\\') // States.Format sees it
			}
			b.WriteByte(r.text[r.at])
		case c == '\'':
			r.at++
			return constant{b.String()}, nil
		default:
			b.WriteByte(c)
		}
	}
	return nil, fmt.Errorf("a text has no closing quote")
}

// path is a path up to the next comma or parenthesis that is not inside of it.
func (r *reader) path() (expression, error) {
	from, deep := r.at, 0
	var quote byte
scan:
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '[' || c == '(':
			deep++
		case deep > 0 && (c == ']' || c == ')'):
			deep--
		case deep == 0 && (c == ',' || c == ')' || c == ' '):
			break scan
		}
	}
	return parsePath(r.text[from:r.at])
}
