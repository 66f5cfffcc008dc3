package nodeimage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/printer"
	"minik8s/internal/ctl/session"
)

// image is one image of a node, as the server reports it.
type image struct {
	ID   string   `json:"id"`
	Tags []string `json:"tags"`
	Size int64    `json:"size"`
}

type listing struct {
	Items []image `json:"items"`
}

// pulling is one line of progress of a pull.
type pulling struct {
	Ref   string `json:"ref"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Error string `json:"error"`
}

const tarType = "application/x-tar"

// Images are the images of a node.
type Images struct {
	session *session.Session
	path    string // their route at the API server
}

// Of returns the images of a node. An empty name means the only node.
func Of(ctx context.Context, s *session.Session, node string) (*Images, error) {
	if node == "" {
		list, err := s.API.List(ctx, api.Nodes, client.ListOptions{})
		if err != nil {
			return nil, err
		}
		var names []string
		for _, obj := range list.Items {
			names = append(names, obj.GetName())
		}
		switch len(names) {
		case 0:
			return nil, exit.Failf(exit.NotFound, "there is no node; start one with minik8sd --role=worker")
		case 1:
			node = names[0]
		default:
			return nil, exit.Usagef("which node? Say --node: %s", strings.Join(names, ", "))
		}
	}
	return &Images{s, "/minik8s/v1/nodes/" + url.PathEscape(node) + "/images"}, nil
}

// List prints the images.
func (im *Images) List(ctx context.Context) error {
	resp, err := im.session.API.Do(ctx, http.MethodGet, im.path, nil, "", nil)
	if err != nil {
		return err
	}
	found, err := readImages(resp)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, it := range found.Items {
		tags := it.Tags
		if len(tags) == 0 {
			tags = []string{"<none>"}
		}
		for _, tag := range tags {
			rows = append(rows, []string{tag, shortID(it.ID), bytesOf(it.Size)})
		}
	}
	if len(rows) == 0 {
		im.session.Note("no images; minik8sd ctl image import FILE loads an archive")
		return nil
	}
	printer.Table(im.session.Console, []string{"IMAGE", "ID", "SIZE"}, rows)
	return nil
}

func readImages(resp *http.Response) (listing, error) {
	defer resp.Body.Close()
	var found listing
	if err := json.NewDecoder(resp.Body).Decode(&found); err != nil {
		return found, fmt.Errorf("the server's answer is no list of images: %w", err)
	}
	return found, nil
}

// Import loads archives (docker save, OCI) onto the node; - is standard input.
func (im *Images) Import(ctx context.Context, files []string) error {
	count := im.session.Tally()
	for _, file := range files {
		count.Add(im.importOne(ctx, file))
	}
	return count.Err()
}

func (im *Images) importOne(ctx context.Context, file string) error {
	body, total := im.session.In, int64(0)
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.IsDir() {
			return exit.Usagef("%s is a folder; an archive is needed (docker save -o FILE, or an OCI layout in a tar)", file)
		}
		body, total = f, info.Size()
	}
	defer im.session.EndProgress()
	counted := &meter{Reader: body, tell: func(done int64) { im.session.Progress("%s: %s", file, portion(done, total)) }}
	resp, err := im.session.API.Do(ctx, http.MethodPost, im.path, nil, tarType, counted)
	if err != nil {
		return err
	}
	found, err := readImages(resp)
	if err != nil {
		return err
	}
	im.session.EndProgress()
	for _, it := range found.Items {
		name := shortID(it.ID)
		if len(it.Tags) > 0 {
			name = strings.Join(it.Tags, ", ")
		}
		im.session.Say("image %s imported (%s)", name, bytesOf(it.Size))
	}
	return nil
}

// Pull pulls images from their registries to the node.
func (im *Images) Pull(ctx context.Context, names []string) error {
	count := im.session.Tally()
	for _, name := range names {
		count.Add(im.pullOne(ctx, name))
	}
	return count.Err()
}

func (im *Images) pullOne(ctx context.Context, name string) error {
	resp, err := im.session.API.Do(ctx, http.MethodPost, im.path, url.Values{"ref": {name}}, "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	defer im.session.EndProgress()
	lines := json.NewDecoder(resp.Body)
	var last pulling
	for {
		var line pulling
		err := lines.Decode(&line)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("the pull of %s broke off: %w", name, err)
		}
		if line.Error != "" {
			return exit.Failf(exit.Failed, "pull %s: %s", name, line.Error)
		}
		im.session.Progress("%s: %s", name, portion(line.Done, line.Total))
		last = line
	}
	im.session.EndProgress()
	if last.Ref == "" {
		last.Ref = name
	}
	im.session.Say("image %s pulled", last.Ref)
	return nil
}

// Remove removes images from the node.
func (im *Images) Remove(ctx context.Context, names []string) error {
	count := im.session.Tally()
	for _, name := range names {
		resp, err := im.session.API.Do(ctx, http.MethodDelete, im.path, url.Values{"ref": {name}}, "", nil)
		if apierrors.IsNotFound(err) {
			err = exit.Failf(exit.NotFound, "image %s is not on the node; minik8sd ctl image list shows what is", name)
		}
		if count.Add(err); err != nil {
			continue
		}
		resp.Body.Close()
		im.session.Say("image %s removed", name)
	}
	return count.Err()
}
