package kubelet

import (
	"os"
	"testing"
)

// needOwnRoot skips a test whose commands in containers look at files, in a chroot: a process that runc
// adds to a container enters the root of the container's mount namespace, and that is not the
// container's root if the one who made it was himself not at the root of his.
func needOwnRoot(t *testing.T) {
	t.Helper()
	mine, err := os.Stat("/")
	if err != nil {
		t.Fatal(err)
	}
	if first, err := os.Stat("/proc/1/root/"); err == nil && !os.SameFile(mine, first) {
		t.Skip("in a chroot commands added to a container do not see its files")
	}
}
