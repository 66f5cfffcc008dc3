package embed

import (
	"context"
	"io"
	"log/slog"

	"github.com/sirupsen/logrus"
)

// bridge is a logger for containerd that passes its entries on to our logger.
func bridge(to *slog.Logger) *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	l.SetLevel(logrus.WarnLevel)
	l.AddHook(hook{to})
	return logrus.NewEntry(l)
}

// bridgeStandard passes on what a part of containerd logs without a context, to logrus's process-wide logger. Nothing
// else here uses it.
func bridgeStandard(to *slog.Logger) {
	l := logrus.StandardLogger()
	l.SetOutput(io.Discard)
	hooks := logrus.LevelHooks{}
	hooks.Add(hook{to})
	l.ReplaceHooks(hooks)
}

type hook struct{ to *slog.Logger }

// Levels implements logrus.Hook.
func (hook) Levels() []logrus.Level {
	return []logrus.Level{logrus.PanicLevel, logrus.FatalLevel, logrus.ErrorLevel, logrus.WarnLevel}
}

// Fire implements logrus.Hook. containerd's errors are logged as warnings: the caller reports what they mean for a
// pod. Its warnings are mostly about normal events.
func (h hook) Fire(e *logrus.Entry) error {
	if _, ok := e.Data["http.request.id"]; ok { // the images' registry has the same logger: its clients are told what was wrong
		return nil
	}
	level := slog.LevelDebug
	if e.Level <= logrus.ErrorLevel {
		level = slog.LevelWarn
	}
	args := make([]any, 0, 2*len(e.Data))
	for k, v := range e.Data {
		args = append(args, k, v)
	}
	h.to.Log(context.Background(), level, "containerd: "+e.Message, args...)
	return nil
}
