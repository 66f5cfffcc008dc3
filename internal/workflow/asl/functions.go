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
)

func format(c *Context, args []any) (any, error) {
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
			if !c.small(args[used]) {
				return nil, c.over
			}
			b.WriteString(text(args[used]))
			if b.Len() > MaxData && !c.small(b.String()) {
				return nil, c.over
			}
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

func stringToJSON(c *Context, args []any) (any, error) {
	s, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("the argument must be a text")
	}
	if !c.visit(len(s) / readBytes) {
		return nil, c.over
	}
	return Decode([]byte(s))
}

func jsonToString(c *Context, args []any) (any, error) {
	if !c.small(args[0]) {
		return nil, c.over
	}
	data, err := Encode(args[0])
	return string(data), err
}

func listOf(v any) ([]any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("the first argument must be a list")
	}
	return list, nil
}

func arrayPartition(_ *Context, args []any) (any, error) {
	list, err := listOf(args[0])
	if err != nil {
		return nil, err
	}
	n, ok := nearest(args[1])
	if !ok || n < 1 {
		return nil, fmt.Errorf("the second argument must be a number from 1 on")
	}
	out := []any{}
	for part := range slices.Chunk(list, int(min(n, int64(len(list)+1)))) {
		out = append(out, slices.Clone(part))
	}
	return out, nil
}

func arrayContains(c *Context, args []any) (any, error) {
	list, err := listOf(args[0])
	if err != nil {
		return nil, err
	}
	if !c.small(list) {
		return nil, c.over
	}
	return slices.ContainsFunc(list, func(v any) bool { return equal(v, args[1]) }), nil
}

// maxRange is how many items States.ArrayRange makes at most.
const maxRange = 1000

func arrayRange(_ *Context, args []any) (any, error) {
	from, a := nearest(args[0])
	to, b := nearest(args[1])
	step, c := nearest(args[2])
	if !a || !b || !c || step == 0 {
		return nil, fmt.Errorf("the arguments must be numbers, and the step not 0")
	}
	out := []any{}
	for n := from; step > 0 && n <= to || step < 0 && n >= to; {
		if out = append(out, n); len(out) > maxRange {
			return nil, fmt.Errorf("it would have more than %d items", maxRange)
		}
		if n, a = add(n, step); !a {
			break // the last one is the last number that there is
		}
	}
	return out, nil
}

func arrayGetItem(_ *Context, args []any) (any, error) {
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

func arrayLength(_ *Context, args []any) (any, error) {
	list, err := listOf(args[0])
	return int64(len(list)), err
}

func arrayUnique(c *Context, args []any) (any, error) {
	list, err := listOf(args[0])
	if err != nil {
		return nil, err
	}
	if !c.small(list) {
		return nil, c.over
	}
	out, seen := []any{}, map[string]bool{}
	for _, v := range list {
		data, err := Encode(v) // 1 and 1.0 have the same
		if err != nil {
			return nil, err
		}
		if !seen[string(data)] {
			seen[string(data)], out = true, append(out, v)
		}
	}
	return out, nil
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

func base64Encode(_ *Context, args []any) (any, error) {
	s, err := coded(args[0])
	return base64.StdEncoding.EncodeToString([]byte(s)), err
}

func base64Decode(_ *Context, args []any) (any, error) {
	s, err := coded(args[0])
	if err != nil {
		return nil, err
	}
	b, err := base64.StdEncoding.DecodeString(s)
	return string(b), err
}

func hash(c *Context, args []any) (any, error) {
	if !c.small(args[0]) {
		return nil, c.over
	}
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

func jsonMerge(_ *Context, args []any) (any, error) {
	a, isA := args[0].(map[string]any)
	b, isB := args[1].(map[string]any)
	if !isA || !isB || args[2] != false {
		return nil, fmt.Errorf("the arguments must be two objects and false: deep merging is not served, as in AWS")
	}
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out, nil
}

func mathRandom(c *Context, args []any) (any, error) {
	from, a := nearest(args[0])
	to, b := nearest(args[1])
	if !a || !b || from >= to || to-from < 0 {
		return nil, fmt.Errorf("the arguments must be two numbers, the first the smaller")
	}
	seed := c.random()
	if len(args) == 3 {
		n, ok := nearest(args[2])
		if !ok {
			return nil, fmt.Errorf("the seed must be a whole number")
		}
		seed = fmt.Sprintf("seed %d", n)
	}
	return from + seeded(seed).Int64N(to-from), nil
}

func mathAdd(_ *Context, args []any) (any, error) {
	a, isA := nearest(args[0])
	b, isB := nearest(args[1])
	if !isA || !isB {
		return nil, fmt.Errorf("the arguments must be numbers")
	}
	sum, ok := add(a, b)
	if !ok {
		return nil, fmt.Errorf("the sum of %d and %d is beyond what a whole number can be", a, b)
	}
	return sum, nil
}

func stringSplit(c *Context, args []any) (any, error) {
	s, isS := args[0].(string)
	by, isBy := args[1].(string)
	if !isS || !isBy {
		return nil, fmt.Errorf("the arguments must be texts")
	}
	if !c.visit((len(s) + len(by)) / readBytes) {
		return nil, c.over
	}
	out := []any{}
	splits := map[rune]bool{}
	for _, c := range by {
		splits[c] = true
	}
	for _, part := range strings.FieldsFunc(s, func(c rune) bool { return splits[c] }) {
		out = append(out, part)
	}
	return out, nil
}

func uuid(c *Context, _ []any) (any, error) {
	r := seeded("uuid " + c.random())
	a, b := r.Uint64(), r.Uint64()
	a, b = a&^0xf000|0x4000, b&^(3<<62)|2<<62
	hi, lo := strconv.FormatUint(a, 16), strconv.FormatUint(b, 16)
	hi, lo = strings.Repeat("0", 16-len(hi))+hi, strings.Repeat("0", 16-len(lo))+lo
	return fmt.Sprintf("%s-%s-%s-%s-%s", hi[:8], hi[8:12], hi[12:], lo[:4], lo[4:]), nil
}
