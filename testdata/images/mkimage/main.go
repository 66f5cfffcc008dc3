// Command mkimage writes an image of one layer as an OCI archive, the same bytes for the same input.
//
//	mkimage -tag busybox:latest -out busybox.tar -applets /bin/busybox=/bin/busybox
//	mkimage -tag minik8s/hello:latest -out hello.tar -entrypoint /hello -expose 80 hello=/hello
//
//	mkimage -tag minik8s/python:latest -out python.tar -root DIR
//
// Each argument is a file of the host and its place in the image. With -root the image has the files of that directory and no others.
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// epoch is every file's time.
var epoch = time.Unix(0, 0).UTC()

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mkimage:", err)
		os.Exit(1)
	}
}

func run() error {
	tag := flag.String("tag", "", "the image's name")
	out := flag.String("out", "", "the archive to write")
	entrypoint := flag.String("entrypoint", "", "the image's entrypoint, words separated by spaces")
	cmd := flag.String("cmd", "", "the image's cmd, words separated by spaces")
	user := flag.String("user", "", "the image's user")
	workdir := flag.String("workdir", "", "the image's working directory")
	expose := flag.String("expose", "", "a TCP port")
	stop := flag.String("stopsignal", "", "the image's stop signal")
	root := flag.String("root", "", "a directory whose files the image has")
	applets := flag.Bool("applets", false, "the first file is busybox: link its applets beside it")
	var env list
	flag.Var(&env, "env", "a variable, NAME=VALUE; may be repeated")
	flag.Parse()
	if *tag == "" || *out == "" {
		return fmt.Errorf("-tag and -out are needed")
	}
	layer, err := buildLayer(flag.Args(), *applets)
	if *root != "" {
		layer, err = treeLayer(*root)
	}
	if err != nil {
		return err
	}
	config := map[string]any{"Env": append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, env...)}
	set := func(key string, value any, ok bool) {
		if ok {
			config[key] = value
		}
	}
	set("Entrypoint", strings.Fields(*entrypoint), *entrypoint != "")
	set("Cmd", strings.Fields(*cmd), *cmd != "")
	set("User", *user, *user != "")
	set("WorkingDir", *workdir, *workdir != "")
	set("StopSignal", *stop, *stop != "")
	set("ExposedPorts", map[string]any{*expose + "/tcp": map[string]any{}}, *expose != "")
	data, err := archive(*tag, layer, config)
	if err != nil {
		return err
	}
	if err := os.WriteFile(*out+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(*out+".new", *out)
}

type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// buildLayer is the tar of the image's only layer: a small root, and the files.
func buildLayer(files []string, applets bool) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	made := map[string]bool{}
	dir := func(name string, mode int64) error {
		if made[name] {
			return nil
		}
		made[name] = true
		return w.WriteHeader(&tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: mode, ModTime: epoch})
	}
	file := func(name string, data []byte, mode int64) error {
		for i := range name {
			if name[i] == '/' {
				if err := dir(name[:i], 0o755); err != nil {
					return err
				}
			}
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data)), ModTime: epoch}); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	for _, d := range []struct {
		name string
		mode int64
	}{{"bin", 0o755}, {"dev", 0o755}, {"etc", 0o755}, {"home", 0o755}, {"proc", 0o755}, {"root", 0o700}, {"sys", 0o755}, {"tmp", 0o1777}, {"var", 0o755}} {
		if err := dir(d.name, d.mode); err != nil {
			return nil, err
		}
	}
	if err := file("etc/passwd", []byte("root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\napp:x:1000:1000:app:/home:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n"), 0o644); err != nil {
		return nil, err
	}
	if err := file("etc/group", []byte("root:x:0:root\ndaemon:x:1:\nextra:x:2000:app\napp:x:1000:\nnogroup:x:65534:\n"), 0o644); err != nil {
		return nil, err
	}
	for i, arg := range files {
		src, dst, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not FILE=PLACE", arg)
		}
		data, err := os.ReadFile(src)
		if err != nil {
			return nil, err
		}
		dst = strings.TrimPrefix(path.Clean("/"+dst), "/")
		if err := file(dst, data, 0o755); err != nil {
			return nil, err
		}
		if !applets || i > 0 {
			continue
		}
		names, err := exec.Command(src, "--list").Output()
		if err != nil {
			return nil, fmt.Errorf("%s --list: %w", src, err)
		}
		sorted := strings.Fields(string(names))
		slices.Sort(sorted)
		for _, n := range sorted {
			if n == path.Base(dst) {
				continue
			}
			h := &tar.Header{Name: path.Join(path.Dir(dst), n), Typeflag: tar.TypeLink, Linkname: dst, Mode: 0o755, ModTime: epoch}
			if err := w.WriteHeader(h); err != nil {
				return nil, err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// treeLayer is the tar of a directory; all of it is root's.
func treeLayer(root string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := filepath.WalkDir(root, func(p string, entry fs.DirEntry, err error) error { // in the order of names
		if err != nil || p == root {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		link := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if link, err = os.Readlink(p); err != nil {
				return err
			}
		}
		h, err := tar.FileInfoHeader(info, link)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		h = &tar.Header{Name: name, Typeflag: h.Typeflag, Linkname: link, Size: h.Size, Mode: h.Mode, ModTime: epoch}
		if info.IsDir() {
			h.Name += "/"
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// archive is the OCI archive of the layer with this config.
func archive(tag string, layer []byte, config map[string]any) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(name string, data []byte) error {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), ModTime: epoch}); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	blob := func(mediaType string, data []byte) (descriptor, error) {
		sum := sha256.Sum256(data)
		hexed := hex.EncodeToString(sum[:])
		return descriptor{MediaType: mediaType, Digest: "sha256:" + hexed, Size: len(data)}, put("blobs/sha256/"+hexed, data)
	}
	platform := map[string]string{"architecture": runtime.GOARCH, "os": "linux"}
	l, err := blob("application/vnd.oci.image.layer.v1.tar", layer)
	if err != nil {
		return nil, err
	}
	configJSON, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": epoch.Format(time.RFC3339), "config": config,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{l.Digest}},
	})
	if err != nil {
		return nil, err
	}
	c, err := blob("application/vnd.oci.image.config.v1+json", configJSON)
	if err != nil {
		return nil, err
	}
	manifestJSON, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": c, "layers": []descriptor{l},
	})
	if err != nil {
		return nil, err
	}
	m, err := blob("application/vnd.oci.image.manifest.v1+json", manifestJSON)
	if err != nil {
		return nil, err
	}
	m.Platform = platform
	m.Annotations = map[string]string{"io.containerd.image.name": tag, "org.opencontainers.image.ref.name": tag}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{m}})
	if err != nil {
		return nil, err
	}
	if err := put("index.json", index); err != nil {
		return nil, err
	}
	if err := put("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
