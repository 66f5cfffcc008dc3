package embed

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
)

// containerd's errors are seen at the usual level, its warnings are not.
func TestErrorsAreLogged(t *testing.T) {
	var out bytes.Buffer
	log := bridge(slog.New(slog.NewTextHandler(&out, nil)))
	log.WithError(errors.New("disk full")).Error("copying")
	log.WithError(os.ErrNotExist).Error("loading")
	log.Warn("cleaning up")
	log.Info("anything")
	bridgeStandard(slog.New(slog.NewTextHandler(&out, nil)))
	logrus.WithError(errors.New("no context")).Error("standard")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[2], `level=WARN msg="containerd: standard" error="no context"`) || !strings.Contains(lines[0], `level=WARN msg="containerd: copying" error="disk full"`) || !strings.Contains(lines[1], "loading") {
		t.Errorf("logged:\n%s", out.String())
	}
}
