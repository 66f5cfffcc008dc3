package minik8s

import (
	"bytes"
	"encoding/json"
	"slices"
)

// JSON is any JSON value, as it was written. Nothing is no value; null is one.
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
	j.Raw = b.Bytes()
	return nil
}

// OpenAPISchemaType says that it may have any type.
func (JSON) OpenAPISchemaType() []string { return nil }

func (j JSON) copied() JSON { return JSON{Raw: slices.Clone(j.Raw)} }
