package asl

import (
	"crypto/md5"  //nolint:gosec // the language has it
	"crypto/sha1" //nolint:gosec // the language has it
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"minik8s/internal/suggest"
)

// call is an intrinsic function with its arguments.
type call struct {
	name string
	args []expression
	nth  int // of the random ones in this expression
}

// maxNested is how deep calls may lie in calls.
const maxNested = 10

// intrinsics are the functions, with the least and the most arguments; -1: any number.
var intrinsics = map[string]struct {
	least, most int
	do          func(args []any, random string) (any, error)
}{
	"States.Format":         {1, -1, format},
	"States.StringToJson":   {1, 1, stringToJSON},
	"States.JsonToString":   {1, 1, func(a []any, _ string) (any, error) { b, err := Encode(a[0]); return string(b), err }},
	"States.Array":          {0, -1, func(a []any, _ string) (any, error) { return slices.Clone(a), nil }},
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

func (c *call) eval(input, context any) (any, *Error) {
	args := make([]any, len(c.args))
	for i, a := range c.args {
		v, err := a.eval(input, context)
		if err != nil {
			return nil, err
		}
		args[i] = v
	}
	of, _ := context.(Context) //nolint:errcheck // without one the seed is empty
	v, err := intrinsics[c.name].do(args, fmt.Sprintf("%s %d", of.Random, c.nth))
	if err != nil {
		return nil, errorf(ErrIntrinsic, "%s: %v", c.name, err)
	}
	return v, nil
}

// reader reads an intrinsic function.
type reader struct {
	text  string
	at    int
	calls int
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
	out := &call{name: name, nth: r.calls}
	r.calls++
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

func format(args []any, _ string) (any, error) {
	pattern, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("the first argument must be a text")
	}
	var b strings.Builder
	used := 1
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern) && (pattern[i+1] == '{' || pattern[i+1] == '}'):
			i++
			b.WriteByte(pattern[i])
		case strings.HasPrefix(pattern[i:], "{}"):
			if used >= len(args) {
				return nil, fmt.Errorf("there are more {} than arguments")
			}
			b.WriteString(text(args[used]))
			used++
			i++
		default:
			b.WriteByte(pattern[i])
		}
	}
	if used != len(args) {
		return nil, fmt.Errorf("there are more arguments than {}")
	}
	return b.String(), nil
}

func stringToJSON(args []any, _ string) (any, error) {
	s, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("the argument must be a text")
	}
	return Decode([]byte(s))
}

func listOf(v any) ([]any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("the first argument must be a list")
	}
	return list, nil
}

func arrayPartition(args []any, _ string) (any, error) {
	list, err := listOf(args[0])
	if err != nil {
		return nil, err
	}
	n, ok := whole(args[1])
	if !ok || n < 1 {
		return nil, fmt.Errorf("the second argument must be a whole number from 1 on")
	}
	out := []any{}
	for part := range slices.Chunk(list, int(min(n, int64(len(list)+1)))) {
		out = append(out, slices.Clone(part))
	}
	return out, nil
}

func arrayContains(args []any, _ string) (any, error) {
	list, err := listOf(args[0])
	if err != nil {
		return nil, err
	}
	return slices.ContainsFunc(list, func(v any) bool { return equal(v, args[1]) }), nil
}

// maxRange is how many items States.ArrayRange makes at most.
const maxRange = 1000

func arrayRange(args []any, _ string) (any, error) {
	from, a := whole(args[0])
	to, b := whole(args[1])
	step, c := whole(args[2])
	if !a || !b || !c || step == 0 {
		return nil, fmt.Errorf("the arguments must be whole numbers, and the step not 0")
	}
	out := []any{}
	for n := from; step > 0 && n <= to || step < 0 && n >= to; n += step {
		if out = append(out, n); len(out) > maxRange {
			return nil, fmt.Errorf("it would have more than %d items", maxRange)
		}
	}
	return out, nil
}

func arrayGetItem(args []any, _ string) (any, error) {
	list, err := listOf(args[0])
	if err != nil {
		return nil, err
	}
	i, ok := whole(args[1])
	if !ok || i < 0 || i >= int64(len(list)) {
		return nil, fmt.Errorf("the list has no item %s", text(args[1]))
	}
	return list[i], nil
}

func arrayLength(args []any, _ string) (any, error) {
	list, err := listOf(args[0])
	return int64(len(list)), err
}

func arrayUnique(args []any, _ string) (any, error) {
	list, err := listOf(args[0])
	out := []any{}
	for _, v := range list {
		if !slices.ContainsFunc(out, func(w any) bool { return equal(v, w) }) {
			out = append(out, v)
		}
	}
	return out, err
}

// maxCoded is what may be encoded, decoded and hashed, in characters.
const maxCoded = 10000

func coded(v any) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("the argument must be a text")
	}
	if len(s) > maxCoded {
		return "", fmt.Errorf("the text may have %d characters", maxCoded)
	}
	return s, nil
}

func base64Encode(args []any, _ string) (any, error) {
	s, err := coded(args[0])
	return base64.StdEncoding.EncodeToString([]byte(s)), err
}

func base64Decode(args []any, _ string) (any, error) {
	s, err := coded(args[0])
	if err != nil {
		return nil, err
	}
	b, err := base64.StdEncoding.DecodeString(s)
	return string(b), err
}

func hash(args []any, _ string) (any, error) {
	data := []byte(text(args[0]))
	if len(data) > maxCoded {
		return nil, fmt.Errorf("the data may have %d characters", maxCoded)
	}
	var sum []byte
	switch args[1] {
	case "MD5":
		s := md5.Sum(data) //nolint:gosec // as asked for
		sum = s[:]
	case "SHA-1":
		s := sha1.Sum(data) //nolint:gosec // as asked for
		sum = s[:]
	case "SHA-256":
		s := sha256.Sum256(data)
		sum = s[:]
	case "SHA-384":
		s := sha512.Sum384(data)
		sum = s[:]
	case "SHA-512":
		s := sha512.Sum512(data)
		sum = s[:]
	default:
		return nil, fmt.Errorf("the second argument must be MD5, SHA-1, SHA-256, SHA-384 or SHA-512")
	}
	return hex.EncodeToString(sum), nil
}

func jsonMerge(args []any, _ string) (any, error) {
	a, isA := args[0].(map[string]any)
	b, isB := args[1].(map[string]any)
	if !isA || !isB || args[2] != false {
		return nil, fmt.Errorf("the arguments must be two objects and false: deep merging is not served, as in AWS")
	}
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out, nil
}

func mathRandom(args []any, random string) (any, error) {
	from, a := whole(args[0])
	to, b := whole(args[1])
	if !a || !b || from >= to || to-from < 0 {
		return nil, fmt.Errorf("the arguments must be two whole numbers, the first the smaller")
	}
	if len(args) == 3 {
		random = "seed " + text(args[2])
	}
	return from + seeded(random).Int64N(to-from), nil
}

func mathAdd(args []any, _ string) (any, error) {
	a, isA := whole(args[0])
	b, isB := whole(args[1])
	if !isA || !isB {
		return nil, fmt.Errorf("the arguments must be whole numbers")
	}
	return a + b, nil
}

func stringSplit(args []any, _ string) (any, error) {
	s, isS := args[0].(string)
	by, isBy := args[1].(string)
	if !isS || !isBy {
		return nil, fmt.Errorf("the arguments must be texts")
	}
	out := []any{}
	for _, part := range strings.FieldsFunc(s, func(c rune) bool { return strings.ContainsRune(by, c) }) {
		out = append(out, part)
	}
	return out, nil
}

func uuid(_ []any, random string) (any, error) {
	r := seeded("uuid " + random)
	a, b := r.Uint64(), r.Uint64()
	a, b = a&^0xf000|0x4000, b&^(3<<62)|2<<62
	hi, lo := strconv.FormatUint(a, 16), strconv.FormatUint(b, 16)
	hi, lo = strings.Repeat("0", 16-len(hi))+hi, strings.Repeat("0", 16-len(lo))+lo
	return fmt.Sprintf("%s-%s-%s-%s-%s", hi[:8], hi[8:12], hi[12:], lo[:4], lo[4:]), nil
}
