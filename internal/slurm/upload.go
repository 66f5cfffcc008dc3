package slurm

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/pkg/sftp"

	"minik8s/internal/slurm/batch"
)

// Upload puts a tar with the job's sources on the login node, for Start to unpack. A broken upload leaves nothing.
func (c *Cluster) Upload(ctx context.Context, l batch.Layout, write func(io.Writer) error) error {
	files, err := c.node.Files(ctx)
	if err != nil {
		return err
	}
	part, err := randomName(sourcesOf(l))
	if err != nil {
		return err
	}
	f, err := files.Create(part)
	if err != nil {
		return fmt.Errorf("a file on the login node: %w", err)
	}
	err = pump(ctx, f, write)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = files.PosixRename(part, sourcesOf(l))
	}
	if err != nil {
		files.Remove(part)
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("sources on the login node: %w", diskFull(err))
	}
	return nil
}

// pump writes to a file on the login node with many packets on their way at a time: File.Write would wait for the answer to each.
// When ctx ends, what write gives is no longer taken. f.Close could not end it: it waits for the same lock.
func pump(ctx context.Context, f *sftp.File, write func(io.Writer) error) error {
	from, to := io.Pipe()
	defer context.AfterFunc(ctx, func() { from.CloseWithError(ctx.Err()) })()
	sent := make(chan error, 1)
	go func() {
		_, err := f.ReadFromWithConcurrency(from, 0)
		from.CloseWithError(err)
		sent <- err
	}()
	err := write(to)
	to.CloseWithError(err)
	return cmp.Or(<-sent, err)
}

// Uploaded reports whether there are sources.
func (c *Cluster) Uploaded(ctx context.Context, l batch.Layout) (bool, error) {
	files, err := c.node.Files(ctx)
	if err != nil {
		return false, err
	}
	_, err = files.Stat(sourcesOf(l))
	if isNotExist(err) {
		return false, nil
	}
	return err == nil, err
}

func sourcesOf(l batch.Layout) string { return l.Folder() + ".sources.tar" }
