package ctl

import (
	"bufio"
	"context"
	"strings"

	"github.com/urfave/cli/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/deletion"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/target"
)

func (p *program) deleteCommand() *cli.Command {
	flags := append(selectFlags(), fileFlags()...)
	return &cli.Command{
		Name: "delete", Aliases: []string{"del", "rm"}, Usage: "delete objects and wait until they are gone",
		ArgsUsage: "KIND NAME... | KIND/NAME... | KIND -l SELECTOR | KIND --all | -f FILE",
		Flags: append(flags,
			allFlag(),
			&cli.BoolFlag{Name: "force", Usage: "without a grace period"},
			&cli.IntFlag{Name: "grace-period", Value: -1, Usage: "`SECONDS` that containers have to end; -1: what the object says"},
			&cli.BoolFlag{Name: "wait", Value: true, Usage: "wait until the objects are gone (--wait=false does not)"},
			&cli.DurationFlag{Name: "timeout", Usage: "how long to wait at most; 0: as long as it takes"},
			&cli.BoolFlag{Name: "ignore-not-found", Usage: "an object that is not there is no error"},
			&cli.BoolFlag{Name: "dry-run", Usage: "say what would be deleted"},
		),
		Action: p.delete,
	}
}

func (p *program) delete(c *cli.Context) error {
	s, err := p.session(c)
	if err != nil {
		return err
	}
	count := s.Tally()
	objects, err := toDelete(c, s, count)
	if err != nil {
		return err
	}
	opts, how := deletion.WithDependents(), "deleted"
	if grace := int64(c.Int("grace-period")); c.Bool("force") {
		opts.GracePeriodSeconds = new(int64)
	} else if grace >= 0 {
		opts.GracePeriodSeconds = &grace
	}
	if c.Bool("dry-run") {
		opts.DryRun, how = []string{metav1.DryRunAll}, "would be deleted (dry run)"
	}
	deletion.All(c.Context, s, count, objects, deletion.Options{
		Request: opts, IgnoreNotFound: c.Bool("ignore-not-found"), Wait: c.Bool("wait") && !c.Bool("dry-run"), Timeout: c.Duration("timeout"),
		Message: func(obj api.Object) string { return api.KindOf(obj).Singular + ` "` + obj.GetName() + `" ` + how },
	})
	return count.Err()
}

// toDelete finds the objects to delete. Objects that do not exist are counted as failures.
func toDelete(c *cli.Context, s *session.Session, count *exit.Tally) ([]api.Object, error) {
	if len(c.StringSlice("filename")) > 0 {
		return inFiles(c, s, count)
	}
	targets, err := target.Parse(c.Context, s, c.Args().Slice())
	if err != nil {
		return nil, err
	}
	if c.Bool("all") && targets[0].Name != "" {
		return nil, exit.Usagef("either names or --all")
	}
	var out []api.Object
	for _, t := range targets {
		if t.Name == "" {
			found, err := allOf(c, s, t.Kind)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
			continue
		}
		obj, err := target.Resolve(c.Context, s, t)
		if exit.CodeOf(err) == exit.NotFound && c.Bool("ignore-not-found") {
			continue
		}
		if err != nil {
			count.Add(err)
			continue
		}
		out = append(out, obj)
	}
	return out, nil
}

// allOf returns the objects of a kind that --all or a selector selects. If there are none, it prints that.
func allOf(c *cli.Context, s *session.Session, kind *api.Kind) ([]api.Object, error) {
	found, err := target.Pick(c.Context, s, []string{kind.GR().String()}, scopeOf(c), c.Bool("all"))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		opts, _ := scopeOf(c).Options(s, kind)
		target.SayNone(s, kind, opts)
	}
	return found, nil
}

// inFiles returns the objects that the manifests of -f name. Objects that do not exist are counted as failures.
func inFiles(c *cli.Context, s *session.Session, count *exit.Tally) ([]api.Object, error) {
	if args := c.Args().Slice(); len(args) > 1 {
		return nil, exit.Usagef("with -f at most a KIND is given: %q is too much", args[1])
	}
	docs, err := documents(c, s)
	if err != nil {
		return nil, err
	}
	var out []api.Object
	for _, d := range docs {
		obj, err := s.API.Get(c.Context, d.Key())
		switch {
		case err == nil:
			out = append(out, obj)
		case apierrors.IsNotFound(err) && c.Bool("ignore-not-found"):
		case apierrors.IsNotFound(err):
			count.Add(exit.Failf(exit.NotFound, "%s not found%s", brief.Ref(d.Kind, d.Name), brief.Namespace(d.Namespace)))
		default:
			count.Add(err)
		}
	}
	return out, nil
}

func (p *program) clearCommand() *cli.Command {
	return &cli.Command{
		Name: "clear", Aliases: []string{"reset"}, Usage: "delete every object that a user made (asks first)",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			&cli.BoolFlag{Name: "wait", Value: true, Usage: "wait until the objects are gone (--wait=false does not)"},
			&cli.DurationFlag{Name: "timeout", Usage: "how long to wait at most; 0: as long as it takes"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return exit.Usagef("clear takes no arguments; minik8sd ctl delete deletes single objects")
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			return clearAll(c.Context, s, c.Bool("yes"), deletion.Options{Wait: c.Bool("wait"), Timeout: c.Duration("timeout")})
		},
	}
}

// clearAll deletes everything that users created.
func clearAll(ctx context.Context, s *session.Session, yes bool, opts deletion.Options) error {
	objects, err := deletion.UserObjects(ctx, s)
	if err != nil {
		return err
	}
	if len(objects) == 0 {
		s.Say("nothing to delete: no user has made anything")
		return nil
	}
	if !yes {
		if err := ask(s, objects); err != nil {
			return err
		}
	}
	// The garbage collector may already have deleted an object, because its owner was deleted before it.
	opts.Request, opts.IgnoreNotFound = deletion.WithDependents(), true
	opts.Message = func(obj api.Object) string {
		return brief.RefOf(obj) + " deleted" + brief.Namespace(obj.GetNamespace())
	}
	count := s.Tally()
	deletion.All(ctx, s, count, objects, opts)
	return count.Err()
}

// ask lists the objects and asks whether to delete them. Without a person to answer, --yes is required.
func ask(s *session.Session, objects []api.Object) error {
	if !s.InTTY {
		return exit.Usagef("this deletes %d objects: say --yes if that is meant", len(objects))
	}
	for i, obj := range objects {
		if i == 20 {
			s.Note("  ... and %d more", len(objects)-i)
			break
		}
		s.Note("  %s%s", brief.RefOf(obj), brief.Namespace(obj.GetNamespace()))
	}
	s.Note("Delete these %d objects? This cannot be undone. [y/N]", len(objects))
	line, _ := bufio.NewReader(s.In).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return exit.Failf(exit.Failed, "nothing was deleted")
}
