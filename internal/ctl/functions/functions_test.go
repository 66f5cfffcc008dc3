package functions_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"minik8s/internal/ctl/functions"
)

// A folder is read as a whole, or not at all.
func TestReadAFolder(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("lib/helper.py", "x = 1")
	if _, _, err := functions.Read(dir); err == nil || !strings.Contains(err.Error(), "main.py") {
		t.Error("without its main file:", err)
	}
	write("main.py", "")
	if _, files, err := functions.Read(dir); err != nil || len(files) != 1 {
		t.Error("with an empty one, of which the API says what it lacks:", files, err)
	}
	if err := os.Symlink(filepath.Join(dir, "lib", "helper.py"), filepath.Join(dir, "linked.py")); err != nil {
		t.Fatal(err)
	}
	_, files, err := functions.Read(dir)
	if err != nil || len(files) != 2 || files[1].Path != "linked.py" || files[1].Content != "x = 1" {
		t.Error("a link to a file:", files, err)
	}
	if err := os.Symlink(filepath.Join(dir, "lib"), filepath.Join(dir, "folder")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := functions.Read(dir); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "folder")) {
		t.Error("a link to a folder, which would be left out:", err)
	}
}
