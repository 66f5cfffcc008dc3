package kubelet

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// needOwnRoot skips a test whose commands in containers look at files, in a chroot: a process that runc adds to a
// container enters the root of the container's mount namespace, which is not the container's root if runc itself ran
// in a chroot. It finds out by entering our own mount namespace the same way.
func needOwnRoot(t *testing.T) {
	t.Helper()
	var mine syscall.Stat_t
	if err := syscall.Stat("/", &mine); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("nsenter", "--mount=/proc/self/ns/mnt", "stat", "-c", "%d:%i", "/").Output()
	if err == nil && strings.TrimSpace(string(out)) != fmt.Sprintf("%d:%d", mine.Dev, mine.Ino) {
		t.Skip("in a chroot commands added to a container do not see its files")
	}
}
