package etcd

import (
	"log/slog"
	"strings"

	"go.uber.org/zap/zapcore"
)

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
	// Right after a first start the log has no snapshot yet to read the version from; etcd tries again.
	early := e.Message == "failed to update storage version"
	if e.Level >= zapcore.ErrorLevel && !early {
		c.log.Error(strings.TrimSpace(e.Message), args...)
	} else {
		c.log.Debug(strings.TrimSpace(e.Message), args...)
	}
	return nil
}

func (c *zapCore) Sync() error { return nil }
