// Command minik8sd is a whole cluster in one file. See README.md.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"minik8s/config"
	"minik8s/internal/clock"
	"minik8s/internal/ctl"
	"minik8s/roles"
)

func main() {
	app := &cli.App{
		Name: "minik8sd", Usage: "a whole cluster in one file",
		Version: roles.Version, HideHelpCommand: true,
		Flags: flags(), Action: serve,
		Commands: []*cli.Command{
			ctl.Command(roles.Version, offline()),
			{Name: "config", Usage: "print the effective configuration, with a comment per setting", Flags: flags(), Action: printConfig},
			{Name: "clean", Usage: "end the pods of a stopped daemon and remove all that it made, its data too", Action: clean,
				Flags: append(flags(), &cli.BoolFlag{Name: "dry-run", Usage: "only say what would be removed"},
					&cli.BoolFlag{Name: "yes", Usage: "do not ask; without a terminal nobody is asked"})},
		},
		ExitErrHandler: func(*cli.Context, error) {}, // main says it once, below
	}
	if err := app.Run(os.Args); err != nil {
		code := 1
		var exit cli.ExitCoder
		if errors.As(err, &exit) {
			code = exit.ExitCode()
		}
		if msg := err.Error(); msg != "" {
			fmt.Fprintln(os.Stderr, "minik8sd: "+msg)
		}
		os.Exit(code)
	}
}

// flags are the settings of package config, and --config.
func flags() []cli.Flag {
	out := []cli.Flag{&cli.StringFlag{Name: "config", Usage: "a YAML `FILE` of settings", EnvVars: []string{"MINIK8S_CONFIG"}}}
	for _, k := range config.Keys {
		usage := fmt.Sprintf("%s [$%s]", k.Doc, k.Env())
		if k.Default != "" {
			usage = fmt.Sprintf("%s (default %s) [$%s]", k.Doc, k.Default, k.Env())
		}
		if k.Bool {
			out = append(out, &cli.BoolFlag{Name: k.Name, Usage: usage})
		} else {
			out = append(out, &cli.StringFlag{Name: k.Name, Usage: usage})
		}
	}
	return out
}

func load(c *cli.Context) (*config.Config, error) {
	if c.Args().Present() {
		return nil, cli.Exit(fmt.Sprintf("%q is no command; minik8sd --help lists them", c.Args().First()), 2)
	}
	given := map[string]string{}
	for _, k := range config.Keys {
		if c.IsSet(k.Name) {
			given[k.Name] = fmt.Sprint(c.Value(k.Name))
		}
	}
	return config.Load(c.String("config"), os.LookupEnv, os.Environ(), given)
}

func printConfig(c *cli.Context) error {
	cfg, err := load(c)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(c.App.Writer, cfg.Print())
	return err
}

func clean(c *cli.Context) error {
	cfg, err := load(c)
	if err != nil {
		return err
	}
	if err := roles.LeaveChroot(cfg); err != nil {
		return err
	}
	opts := roles.CleanOptions{DryRun: c.Bool("dry-run"), Out: c.App.Writer}
	if !c.Bool("yes") && term.IsTerminal(int(os.Stdin.Fd())) {
		opts.Confirm = confirm
	}
	return roles.Clean(c.Context, cfg, logger(cfg), opts)
}

// offline is what ctl does to the data directory of a stopped daemon.
func offline() ctl.Offline {
	log := logger(&config.Config{LogLevel: slog.LevelError})
	return ctl.Offline{
		Restore: func(ctx context.Context, dataDir, file string, force bool) (ctl.Restored, error) {
			r, err := roles.Restore(ctx, dataDir, file, force, log)
			return ctl.Restored{Revision: r.Revision, Aside: r.Aside}, err
		},
		Recover: func(ctx context.Context, dataDir string) (ctl.Restored, error) {
			r, err := roles.Recover(ctx, dataDir, log)
			return ctl.Restored{Revision: r.Revision, Aside: r.Aside}, err
		},
	}
}

// confirm asks on the terminal.
func confirm() (bool, error) {
	fmt.Fprint(os.Stderr, "Remove all this? [y/N] ")
	answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}

func serve(c *cli.Context) error {
	cfg, err := load(c)
	if err != nil {
		return err
	}
	if err := roles.LeaveChroot(cfg); err != nil {
		return err
	}
	clock.Skew(cfg.ClockOffset)
	log := logger(cfg)
	d, err := roles.New(cfg, log)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err = d.Run(ctx, func() { fmt.Fprint(c.App.Writer, d.Banner()) })
	if errors.Is(err, roles.ErrMoved) {
		log.Warn("starting again", "error", err)
		stop() // from here on a signal ends the program
		if context.Cause(ctx) != context.Canceled {
			return nil // one has come before
		}
		return errors.Join(err, roles.Again())
	}
	return err
}

func logger(cfg *config.Config) *slog.Logger {
	opts := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, opts))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, opts))
}
