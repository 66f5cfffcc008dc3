package ctl

import (
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

func (p *program) versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the versions of this program and of the server",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "client", Usage: "of this program only"}},
		Action: func(c *cli.Context) error {
			p.Say("client: %s", p.clientVersion())
			if c.Bool("client") {
				return nil
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			info, err := s.API.Version(c.Context)
			if err != nil {
				return err
			}
			p.Say("server: %s (%s, %s) at %s", info.GitVersion, info.GoVersion, info.Platform, s.API.At())
			return nil
		},
	}
}

// clientVersion returns the version of this program, and how it was built.
func (p *program) clientVersion() string {
	text := p.version
	if info, ok := debug.ReadBuildInfo(); ok && text == "" {
		text = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 && (text == "(devel)" || text == "") {
				text = s.Value[:12]
			}
		}
	}
	if text == "" {
		text = "(devel)"
	}
	return text + " (" + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
}
