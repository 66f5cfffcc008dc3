package kubelet

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"minik8s/internal/machine"
)

// overTheWire has the kubelet under test use the remote client, as a worker on another machine does.
var overTheWire bool

// TestMain runs the tests with the local client, and those on a fake runtime again with the remote one.
func TestMain(m *testing.M) {
	machine.Run(func() int {
		if code := m.Run(); code != 0 {
			return code
		}
		overTheWire = true
		if err := flag.Set("test.short", "true"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println("again, over the wire")
		return m.Run()
	})
}
