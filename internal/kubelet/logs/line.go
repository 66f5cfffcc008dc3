package logs

import (
	"bytes"
	"fmt"
	"time"
)

// line is a record of the log: a line of output, or, if it was long, a part of one.
type line struct {
	at      []byte // RFC 3339, as written
	stream  string // stdout or stderr
	partial bool   // the line continues in the next record
	content []byte
}

// parse reads a record; raw is without its newline.
func parse(raw []byte) (line, error) {
	at, rest, ok1 := bytes.Cut(raw, []byte{' '})
	stream, rest, ok2 := bytes.Cut(rest, []byte{' '})
	tag, content, ok3 := bytes.Cut(rest, []byte{' '})
	if !ok1 || !ok2 {
		return line{}, fmt.Errorf("not a line of a container log: %q", clip(raw))
	}
	if !ok3 { // an empty line may lack the last blank
		tag, content = rest, nil
	}
	name := string(stream)
	if name != "stdout" && name != "stderr" {
		return line{}, fmt.Errorf("unknown stream in container log: %q", clip(raw))
	}
	first, _, _ := bytes.Cut(tag, []byte{':'})
	return line{at: at, stream: name, partial: string(first) == "P", content: content}, nil
}

// time is when the record was written; the zero time if it does not say so.
func (l line) time() time.Time {
	t, err := time.Parse(time.RFC3339Nano, string(l.at))
	if err != nil {
		return time.Time{}
	}
	return t
}

func clip(b []byte) []byte { return b[:min(len(b), 80)] }
