// Command pack compresses the files it is given into a directory, each as NAME.zst. The build uses
// it so that no compressor has to be installed.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

func main() {
	out := flag.String("out", "", "the directory to write to")
	flag.Parse()
	for _, path := range flag.Args() {
		if err := pack(path, filepath.Join(*out, filepath.Base(path)+".zst")); err != nil {
			fmt.Fprintln(os.Stderr, "pack:", err)
			os.Exit(1)
		}
	}
}

// pack writes src to dst by way of a temporary file, so that dst is never half-written.
func pack(src, dst string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(dst), ".pack-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	z, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20))
	if err != nil {
		return err
	}
	if _, err := io.Copy(z, in); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	if err := out.Chmod(0o644); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Rename(out.Name(), dst)
}
