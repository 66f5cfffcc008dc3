package minik8s

import (
	"bytes"
	"encoding/json"
	"slices"
)

// JSON is any JSON value, as it was written, but for spaces and some escapes. Nothing is no value; null is one.
type JSON struct{ Raw []byte }

// IsZero makes omitzero leave out what has no value.
func (j JSON) IsZero() bool { return len(j.Raw) == 0 }

// MarshalJSON implements json.Marshaler.
func (j JSON) MarshalJSON() ([]byte, error) {
	if j.IsZero() {
		return []byte("null"), nil
	}
	return j.Raw, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (j *JSON) UnmarshalJSON(data []byte) error {
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return err
	}
	j.Raw = plain(b.Bytes())
	return nil
}

// plain has a value be the same bytes after it was written and read again. When encoding/json writes it, it makes \u003c, \u003e and \u0026 of <, >
// and &, and of the line separators U+2028 and U+2029 escapes, too. Read back with these it would seem changed, and to be up to six times as long.
// The first are undone here. The others are done, as all encoders of Go do them.
func plain(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`\u00`)) && !bytes.Contains(raw, []byte("\u2028"[:2])) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		n := 1
		switch rest := raw[i:]; {
		case bytes.HasPrefix(rest, []byte(`\u003c`)):
			out, n = append(out, '<'), 6
		case bytes.HasPrefix(rest, []byte(`\u003e`)):
			out, n = append(out, '>'), 6
		case bytes.HasPrefix(rest, []byte(`\u0026`)):
			out, n = append(out, '&'), 6
		case bytes.HasPrefix(rest, []byte("\u2028")):
			out, n = append(out, `\u2028`...), 3
		case bytes.HasPrefix(rest, []byte("\u2029")):
			out, n = append(out, `\u2029`...), 3
		case rest[0] == '\\' && len(rest) > 1: // and what follows a backslash is its own
			out, n = append(out, rest[:2]...), 2
		default:
			out = append(out, rest[0])
		}
		i += n
	}
	return out
}

// OpenAPISchemaType says that it may have any type.
func (JSON) OpenAPISchemaType() []string { return nil }

func (j JSON) copied() JSON { return JSON{Raw: slices.Clone(j.Raw)} }
