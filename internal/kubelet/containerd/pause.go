package containerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"golang.org/x/sys/unix"

	"minik8s/internal/disk"
	"minik8s/internal/kubelet/containerd/spec"
	"minik8s/internal/kubelet/cri"
)

// pauseName is the name of the container that holds a shared process namespace. It is hidden from the kubelet.
const pauseName = "_pause"

// startPause runs the pod's first process, whose pid namespace the containers join.
func (r *Runtime) startPause(ctx context.Context, rec *record) error {
	ctx = r.ns(ctx)
	if r.containerd.Programs.Pause == "" {
		return errors.New("containerd: shareProcessNamespace needs minik8s's own containerd")
	}
	root := filepath.Join(r.cfg.RunDir, "pause")
	for _, d := range []string{"proc", "dev", "sys"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return fmt.Errorf("containerd: %w", err)
		}
	}
	data, err := os.ReadFile(r.containerd.Programs.Pause)
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	if err := disk.Publish(filepath.Join(root, "pause"), data, 0o755); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	m := meta{
		ID: newID(), PodUID: rec.Config.PodUID, PodNamespace: rec.Config.PodNamespace, PodName: rec.Config.PodName,
		Name: pauseName, SandboxID: rec.Sandbox.ID, OwnPIDs: true, CreatedAt: time.Now(),
	}
	m.Cgroup = filepath.Join(cmp.Or(rec.Config.CgroupParent, filepath.Join(r.cfg.CgroupRoot, m.PodUID)), m.ID)
	c := newContainer(m, r.containerDir(m.ID))
	if err := os.Mkdir(c.dir, 0o711); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	oci := spec.Pause(rec.Config, r.sandboxes.Dir(rec.Sandbox.ID), m.Cgroup, root)
	if err := r.createRecord(ctx, c, oci, ""); err != nil {
		return err
	}
	r.addContainer(c)
	if err := r.createTask(ctx, c, nil, false); err != nil {
		return err
	}
	if s, _ := c.get(); s.StartError != "" {
		return fmt.Errorf("containerd: pause: %s", s.StartError)
	}
	if _, err := r.client.TaskService().Start(ctx, &tasks.StartRequest{ContainerID: m.ID}); err != nil {
		return fmt.Errorf("containerd: pause: %w", fromGRPC(err))
	}
	_, err = c.advance(cri.Running, func(s *state) { s.StartedAt = time.Now() })
	return err
}

// removePause ends the pause container, and with it all processes left in its pid namespace.
func (r *Runtime) removePause(ctx context.Context, rec *record) error {
	for _, c := range r.containersOf(rec.Config.PodUID) {
		if c.meta.Name == pauseName {
			if err := r.removeContainer(r.ns(ctx), c); err != nil {
				return err
			}
		}
	}
	return nil
}

// pidNamespace is the path of the pid namespace a pod's containers share; empty if each has its own.
func (r *Runtime) pidNamespace(rec *record) (string, error) {
	if !rec.Config.ShareProcessNamespace || rec.Config.HostPID {
		return "", nil
	}
	for _, c := range r.containersOf(rec.Config.PodUID) {
		if s, pid := c.get(); c.meta.Name == pauseName && s.State == cri.Running && unix.Kill(int(pid), 0) == nil {
			return fmt.Sprintf("/proc/%d/ns/pid", pid), nil
		}
	}
	return "", fmt.Errorf("containerd: pod %s/%s has lost its shared pid namespace", rec.Config.PodNamespace, rec.Config.PodName)
}

// openPIDs opens the process namespace of a running container of a pod. The file refers to that namespace even if the
// process ends meanwhile and another gets its number.
func (r *Runtime) openPIDs(podUID, id string) (*os.File, error) {
	c := r.container(id)
	if c == nil || c.meta.PodUID != podUID {
		return nil, fmt.Errorf("containerd: the pod has no container %s whose processes could be shared", id)
	}
	s, pid := c.get()
	if s.State != cri.Running {
		return nil, fmt.Errorf("containerd: container %s, whose processes were to be shared, is not running", c.meta.Name)
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		return nil, fmt.Errorf("containerd: the processes of container %s: %w", c.meta.Name, err)
	}
	if !inCgroup(pid, c.meta.Cgroup) {
		f.Close()
		return nil, fmt.Errorf("containerd: container %s, whose processes were to be shared, has ended", c.meta.Name)
	}
	return f, nil
}
