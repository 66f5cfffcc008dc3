package containerd

import (
	"testing"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/cri/critest"
)

const untilTold = "trap 'exit 0' TERM; echo ready; while :; do sleep 1000 & wait; done"

func TestContract(t *testing.T) {
	critest.Run(t, func(t *testing.T) *critest.Harness {
		b := newBench(t)
		return &critest.Harness{
			Runtime: b.Runtime,
			Sandbox: b.sandboxConfig,
			Container: func(pod, name string) cri.ContainerConfig {
				return b.containerConfig(pod, name, "sh", "-c", untilTold)
			},
			ShortImage: "busybox", FullImage: "docker.io/library/busybox:latest",
			Restart: func(t *testing.T) cri.Runtime {
				b.restart()
				return b.Runtime
			},
		}
	})
}
