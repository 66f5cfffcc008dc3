package logs

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// parts opens all parts of a log, the oldest first. None at all is fs.ErrNotExist. The runtime may rotate meanwhile:
// then the parts are listed again, so that none is missed or read twice.
func parts(path string) ([]*os.File, error) {
	for try := 0; ; try++ {
		files, steady, err := openParts(path)
		if err != nil || steady || try == 10 {
			return files, err
		}
		closeAll(files)
	}
}

func openParts(path string) (files []*os.File, steady bool, err error) {
	rotated, err := rotatedNames(path)
	if err != nil {
		return nil, false, err
	}
	for _, name := range rotated {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the oldest are removed meanwhile
		}
		if err != nil {
			closeAll(files)
			return nil, false, err
		}
		files = append(files, f)
	}
	current, err := os.Open(path)
	switch {
	case err == nil:
		files = append(files, current)
	case !errors.Is(err, fs.ErrNotExist):
		closeAll(files)
		return nil, false, err
	case len(files) == 0:
		return nil, false, err
	}
	again, err := rotatedNames(path)
	if err != nil {
		closeAll(files)
		return nil, false, err
	}
	return files, len(again) == 0 || len(rotated) > 0 && again[len(again)-1] == rotated[len(rotated)-1], nil
}

// rotatedNames lists the older parts, the oldest first.
func rotatedNames(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(path)+".") && !strings.HasSuffix(e.Name(), ".tmp") {
			out = append(out, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	slices.Sort(out)
	return out, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// after opens the parts that follow f, which has been read to its end; none if f is still the newest. If f itself has
// been removed, all parts follow it.
func after(path string, f *os.File) ([]*os.File, error) {
	mine, err := f.Stat()
	if err != nil {
		return nil, err
	}
	files, err := parts(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i, o := range files {
		if info, err := o.Stat(); err == nil && os.SameFile(mine, info) {
			closeAll(files[:i+1])
			return files[i+1:], nil
		}
	}
	return files, nil
}

// content is the file's text; a gzip file is decompressed in memory.
func content(f *os.File) (io.ReadSeeker, error) {
	if !strings.HasSuffix(f.Name(), ".gz") {
		return f, nil
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	return bytes.NewReader(data), nil
}

const blockSize = 16 << 10

// seekTail moves r to the start of its last n lines and returns how many there were, if fewer.
func seekTail(r io.ReadSeeker, n int64) (found int64, err error) {
	end, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	block := make([]byte, blockSize)
	for at := end; at > 0; {
		size := min(at, blockSize)
		at -= size
		if _, err := r.Seek(at, io.SeekStart); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(r, block[:size]); err != nil {
			return 0, err
		}
		for i := size - 1; i >= 0; i-- {
			// The newline at the very end closes the last line, it begins none.
			if block[i] != '\n' || at+i == end-1 {
				continue
			}
			if found++; found == n {
				_, err := r.Seek(at+i+1, io.SeekStart)
				return found, err
			}
		}
	}
	if end > 0 {
		found++
	}
	_, err = r.Seek(0, io.SeekStart)
	return found, err
}
