package ctl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// image is one image of a node, as the server tells it.
type image struct {
	ID   string   `json:"id"`
	Tags []string `json:"tags"`
	Size int64    `json:"size"`
}

type images struct {
	Items []image `json:"items"`
}

// pulling is one line of a pull's progress.
type pulling struct {
	Ref   string `json:"ref"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Error string `json:"error"`
}

const tarType = "application/x-tar"

func (p *program) imageCommand() *cli.Command {
	node := func() []cli.Flag {
		return []cli.Flag{&cli.StringFlag{Name: "node", Usage: "the `NODE`; may be left out where there is only one"}}
	}
	sub := func(name, usage, args string, do func(*session, *cli.Context, string) error) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: args, Flags: node(),
			Action: func(c *cli.Context) error {
				if args != "" && !c.Args().Present() {
					return usagef("image %s %s: which one?", name, args)
				}
				s, err := p.session(c)
				if err != nil {
					return err
				}
				path, err := s.imagesPath(c)
				if err != nil {
					return err
				}
				return do(s, c, path)
			},
		}
	}
	list := sub("list", "list the images of a node", "", (*session).imageList)
	list.Aliases = []string{"ls"}
	remove := sub("rm", "remove images from a node", "REF...", (*session).imageRemove)
	remove.Aliases = []string{"remove", "delete"}
	return &cli.Command{
		Name: "image", Aliases: []string{"images"}, Usage: "import, list, pull and remove a node's images",
		Subcommands: []*cli.Command{
			sub("import", "load an archive (docker save, OCI) into a node", "FILE...", (*session).imageImport),
			list,
			sub("pull", "pull images from their registry to a node", "REF...", (*session).imagePull),
			remove,
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c.Command.Subcommands, c.Args().First())
			}
			return usagef("image what? import FILE, list, pull REF, or rm REF")
		},
	}
}

// imagesPath is the route of a node's images.
func (s *session) imagesPath(c *cli.Context) (string, error) {
	node := c.String("node")
	if node == "" {
		list, err := s.api.List(c.Context, api.Nodes, client.ListOptions{})
		if err != nil {
			return "", err
		}
		var names []string
		for _, obj := range list.Items {
			names = append(names, obj.GetName())
		}
		switch len(names) {
		case 0:
			return "", failf(codeNotFound, "there is no node; start one with minik8sd --role=worker")
		case 1:
			node = names[0]
		default:
			return "", usagef("which node? Say --node: %s", strings.Join(names, ", "))
		}
	}
	return "/minik8s/v1/nodes/" + url.PathEscape(node) + "/images", nil
}

func (s *session) imageList(c *cli.Context, path string) error {
	resp, err := s.api.Do(c.Context, http.MethodGet, path, nil, "", nil)
	if err != nil {
		return err
	}
	found, err := readImages(resp)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, im := range found.Items {
		tags := im.Tags
		if len(tags) == 0 {
			tags = []string{"<none>"}
		}
		for _, tag := range tags {
			rows = append(rows, []string{tag, shortID(im.ID), bytesOf(im.Size)})
		}
	}
	if len(rows) == 0 {
		s.note("no images; minik8sd ctl image import FILE loads an archive")
		return nil
	}
	s.simpleTable([]string{"IMAGE", "ID", "SIZE"}, rows)
	return nil
}

func readImages(resp *http.Response) (images, error) {
	defer resp.Body.Close()
	var found images
	if err := json.NewDecoder(resp.Body).Decode(&found); err != nil {
		return found, fmt.Errorf("the server's answer is no list of images: %w", err)
	}
	return found, nil
}

func (s *session) imageImport(c *cli.Context, path string) error {
	count := tally{p: s.program}
	for _, file := range c.Args().Slice() {
		count.add(s.importOne(c, path, file))
	}
	return count.err()
}

func (s *session) importOne(c *cli.Context, path, file string) error {
	body, total := s.in, int64(0)
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
			return usagef("%s is a folder; an archive is needed (docker save -o FILE, or an OCI layout in a tar)", file)
		}
		body, total = f, info.Size()
	}
	defer s.endProgress()
	counted := &meter{Reader: body, tell: func(done int64) { s.progress("%s: %s", file, portion(done, total)) }}
	resp, err := s.api.Do(c.Context, http.MethodPost, path, nil, tarType, counted)
	if err != nil {
		return err
	}
	found, err := readImages(resp)
	if err != nil {
		return err
	}
	s.endProgress()
	for _, im := range found.Items {
		name := shortID(im.ID)
		if len(im.Tags) > 0 {
			name = strings.Join(im.Tags, ", ")
		}
		s.say("image %s imported (%s)", name, bytesOf(im.Size))
	}
	return nil
}

func (s *session) imagePull(c *cli.Context, path string) error {
	count := tally{p: s.program}
	for _, name := range c.Args().Slice() {
		count.add(s.pullOne(c, path, name))
	}
	return count.err()
}

func (s *session) pullOne(c *cli.Context, path, name string) error {
	resp, err := s.api.Do(c.Context, http.MethodPost, path, url.Values{"ref": {name}}, "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	defer s.endProgress()
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
			return failf(codeFailed, "pull %s: %s", name, line.Error)
		}
		s.progress("%s: %s", name, portion(line.Done, line.Total))
		last = line
	}
	s.endProgress()
	if last.Ref == "" {
		last.Ref = name
	}
	s.say("image %s pulled", last.Ref)
	return nil
}

func (s *session) imageRemove(c *cli.Context, path string) error {
	count := tally{p: s.program}
	for _, name := range c.Args().Slice() {
		resp, err := s.api.Do(c.Context, http.MethodDelete, path, url.Values{"ref": {name}}, "", nil)
		if apierrors.IsNotFound(err) {
			err = failf(codeNotFound, "image %s is not on the node; minik8sd ctl image list shows what is", name)
		}
		if count.add(err); err != nil {
			continue
		}
		resp.Body.Close()
		s.say("image %s removed", name)
	}
	return count.err()
}
