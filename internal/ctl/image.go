package ctl

import (
	"github.com/urfave/cli/v2"

	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/nodeimage"
)

func (p *program) imageCommand() *cli.Command {
	sub := func(name, usage, args string, do func(*nodeimage.Images, *cli.Context) error, aliases ...string) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: args, Aliases: aliases,
			Flags: []cli.Flag{&cli.StringFlag{Name: "node", Usage: "the `NODE`; may be left out where there is only one"}},
			Action: func(c *cli.Context) error {
				if args != "" && !c.Args().Present() {
					return exit.Usagef("image %s %s: which one?", name, args)
				}
				s, err := p.session(c)
				if err != nil {
					return err
				}
				images, err := nodeimage.Of(c.Context, s, c.String("node"))
				if err != nil {
					return err
				}
				return do(images, c)
			},
		}
	}
	return &cli.Command{
		Name: "image", Aliases: []string{"images"}, Usage: "import, list, pull and remove a node's images",
		Subcommands: []*cli.Command{
			sub("import", "load an archive (docker save, OCI) into a node", "FILE...",
				func(im *nodeimage.Images, c *cli.Context) error { return im.Import(c.Context, c.Args().Slice()) }),
			sub("list", "list the images of a node", "",
				func(im *nodeimage.Images, c *cli.Context) error { return im.List(c.Context) }, "ls"),
			sub("pull", "pull images from their registry to a node", "REF...",
				func(im *nodeimage.Images, c *cli.Context) error { return im.Pull(c.Context, c.Args().Slice()) }),
			sub("rm", "remove images from a node", "REF...",
				func(im *nodeimage.Images, c *cli.Context) error { return im.Remove(c.Context, c.Args().Slice()) }, "remove", "delete"),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c.Command.Subcommands, c.Args().First())
			}
			return exit.Usagef("image what? import FILE, list, pull REF, or rm REF")
		},
	}
}
