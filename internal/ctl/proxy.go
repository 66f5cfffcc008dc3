package ctl

import (
	"github.com/urfave/cli/v2"

	"minik8s/internal/ctl/apiproxy"
	"minik8s/internal/ctl/exit"
)

func (p *program) proxyCommand() *cli.Command {
	return &cli.Command{
		Name: "proxy", Usage: "serve the API on a port of this machine, with your rights, for programs that have none",
		Description: "Whoever reaches the port may do what you may. Services and nodes are below it too:\n" +
			"/api/v1/namespaces/NAMESPACE/services/NAME:PORT/proxy/ and /api/v1/nodes/NAME/proxy/.\n" +
			"What accepts and rejects take are regular expressions, separated by commas.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "port", Aliases: []string{"p"}, Value: 8001, Usage: "the `PORT` to listen on; 0: any free one"},
			&cli.StringFlag{Name: "address", Value: "127.0.0.1", Usage: "the `ADDRESS` of this machine to listen on"},
			&cli.StringFlag{Name: "api-prefix", Value: "/", Usage: "the `PATH` below which the API is"},
			&cli.StringFlag{Name: "accept-hosts", Value: apiproxy.DefaultAcceptHosts, Usage: "the names by which clients may call this port"},
			&cli.StringFlag{Name: "accept-paths", Value: apiproxy.DefaultAcceptPaths, Usage: "the paths that are passed on"},
			&cli.StringFlag{Name: "reject-paths", Value: apiproxy.DefaultRejectPaths, Usage: "the paths that are not"},
			&cli.StringFlag{Name: "reject-methods", Value: apiproxy.DefaultRejectMethods, Usage: "the methods that are not: ^POST$,^PUT$,^PATCH$,^DELETE$"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return exit.Usagef("proxy takes no arguments; see minik8sd ctl proxy --help")
			}
			if n := c.Int("port"); n < 0 || n > 65535 {
				return exit.Usagef("--port: %d: expected a number from 0 to 65535", n)
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			h, err := apiproxy.Handler(s.API, c.String("api-prefix"), apiproxy.Filter{AcceptHosts: c.String("accept-hosts"),
				AcceptPaths: c.String("accept-paths"), RejectPaths: c.String("reject-paths"), RejectMethods: c.String("reject-methods")})
			if err != nil {
				return err
			}
			l, err := apiproxy.Listen(c.Context, c.String("address"), c.Int("port"))
			if err != nil {
				return err
			}
			s.Say("Starting to serve on %s", l.Addr())
			return apiproxy.Serve(c.Context, l, h)
		},
	}
}
