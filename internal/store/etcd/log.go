package etcd

import (
	"log/slog"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// ZapLogger passes what etcd logs on to log: its errors as errors, all else at level debug.
func ZapLogger(log *slog.Logger) *zap.Logger { return zap.New(&zapCore{log: log}) }

// zapCore passes etcd's log to slog, from level warn on; the levels below are too detailed.
type zapCore struct {
	log    *slog.Logger
	fields []zapcore.Field
}

func (c *zapCore) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

func (c *zapCore) With(f []zapcore.Field) zapcore.Core {
	return &zapCore{log: c.log, fields: append(append([]zapcore.Field(nil), c.fields...), f...)}
}

func (c *zapCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *zapCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if c.log == nil {
		return nil
	}
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range append(append([]zapcore.Field(nil), c.fields...), fields...) {
		f.AddTo(enc)
	}
	args := []any{"part", "etcd"}
	for k, v := range enc.Fields {
		args = append(args, k, v)
	}
	if e.Level >= zapcore.ErrorLevel && !known[e.Message] {
		c.log.Error(strings.TrimSpace(e.Message), args...)
	} else {
		c.log.Debug(strings.TrimSpace(e.Message), args...)
	}
	return nil
}

// known are messages of errors that need nobody's attention: right after a first start etcd's log has no snapshot yet to
// read the version from, and etcd tries again; a start that fails is the error of Open, too, or is tried again.
var known = map[string]bool{"failed to update storage version": true, "bootstrap failed": true}

func (c *zapCore) Sync() error { return nil }
