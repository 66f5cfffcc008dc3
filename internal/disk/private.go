package disk

import (
	"fmt"
	"io/fs"
	"os"
)

// Private makes a directory that only its owner, us, may enter, or its group too where mode says so. One that
// is there is closed. Its parents, where they are missing, are made as directories usually are.
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
