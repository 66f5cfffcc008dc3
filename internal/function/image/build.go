package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/function/instance"
)

// Where things are in an image.
const (
	Folder = "/function" // the function's files
	Main   = Folder + "/main.py"
	PreRun = Folder + "/.prerun.sh"
	server = "/minik8s" // the program that calls the function
)

// epoch is the time of every file.
var epoch = time.Unix(0, 0).UTC()

// Build makes the image of a function with a source.
func Build(base v1.Image, s *minik8s.FunctionSpec) (v1.Image, error) {
	files := map[string][]byte{Main: []byte(s.Source)}
	program, err := programFiles()
	if err != nil {
		return nil, err
	}
	maps.Copy(files, program)
	for _, f := range s.Files {
		data := f.Data
		if f.Content != "" {
			data = []byte(f.Content)
		}
		files[path.Join(Folder, f.Path)] = data
	}
	if s.PreRun != "" {
		files[PreRun] = []byte(s.PreRun)
	}
	layer, err := layerOf(files)
	if err != nil {
		return nil, err
	}
	img, err := mutate.Append(base, mutate.Addendum{Layer: static.NewLayer(layer, types.OCIUncompressedLayer), MediaType: types.OCIUncompressedLayer,
		History: v1.History{CreatedBy: "minik8s", Created: v1.Time{Time: epoch}}})
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	cfg := file.DeepCopy()
	cfg.Created = v1.Time{Time: epoch}
	cfg.Config.Entrypoint, cfg.Config.Cmd = []string{"python3", "-u", path.Join(server, instance.Main)}, nil
	cfg.Config.WorkingDir = Folder
	cfg.Config.Env = append(cfg.Config.Env, "MINIK8S_MAIN="+Main)
	if s.PreRun != "" {
		cfg.Config.Env = append(cfg.Config.Env, "MINIK8S_PRERUN="+PreRun)
	}
	return mutate.ConfigFile(img, cfg)
}

// programFiles are those of the program that calls the function.
func programFiles() (map[string][]byte, error) {
	files := map[string][]byte{}
	program, err := instance.Files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, f := range program {
		if files[path.Join(server, f.Name())], err = instance.Files.ReadFile(f.Name()); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Platform is a sum of all that is in an image and is no function's: with the same one, images of the same function are the same.
func Platform(base v1.Hash) (string, error) {
	files, err := programFiles()
	if err != nil {
		return "", err
	}
	layer, err := layerOf(files)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte(base.String()+"\x00"), layer...))
	return hex.EncodeToString(sum[:8]), nil
}

// layerOf is the tar of files, by their absolute paths.
func layerOf(files map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	made := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		name, data := strings.TrimPrefix(name, "/"), files[name]
		for i := range name {
			if dir := name[:i]; name[i] == '/' && !made[dir] {
				made[dir] = true
				if err := w.WriteHeader(&tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: epoch}); err != nil {
					return nil, err
				}
			}
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(data)), ModTime: epoch}); err != nil {
			return nil, err
		}
		if _, err := w.Write(data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
