package disk

import (
	"fmt"
	"io/fs"
	"os"
)

// Private creates a directory that only its owner, this process's user, may enter, and its group if mode says so. An
// existing one gets the same mode. Missing parents are created with the usual mode.
func Private(dir string, mode fs.FileMode) error {
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&^mode == 0 {
		return nil
	}
	if err := os.Chmod(dir, info.Mode().Perm()&mode); err != nil {
		return fmt.Errorf("%s is open to other users of the machine, and cannot be closed: %w", dir, err)
	}
	return nil
}
