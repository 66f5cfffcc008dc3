package embed

import (
	"context"
	"errors"
	"io"
	"io/fs"
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
// pod. Its warnings, and some of its errors, are mostly about normal events, such as the end of a shim.
func (h hook) Fire(e *logrus.Entry) error {
	level := slog.LevelDebug
	if e.Level <= logrus.ErrorLevel && !expected(e) {
		level = slog.LevelWarn
	}
	args := make([]any, 0, 2*len(e.Data))
	for k, v := range e.Data {
		args = append(args, k, v)
	}
	h.to.Log(context.Background(), level, "containerd: "+e.Message, args...)
	return nil
}

// expected reports whether an error belongs to the ordinary end of a sandbox. containerd reads a shim's log until the
// pipe is closed; and it runs the shim's program once more to clean up, in a bundle that package sandbox has removed
// so that it does not.
func expected(e *logrus.Entry) bool {
	err, ok := e.Data[logrus.ErrorKey].(error)
	switch {
	case !ok:
		return false
	case e.Message == "copy shim log":
		return errors.Is(err, fs.ErrClosed)
	case e.Message == "failed to delete":
		return errors.Is(err, fs.ErrNotExist)
	}
	return false
}
