package ctl

import (
	"time"

	"github.com/urfave/cli/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
)

func (p *program) deleteCommand() *cli.Command {
	flags := append(selectFlags(), fileFlags()...)
	return &cli.Command{
		Name: "delete", Aliases: []string{"del", "rm"}, Usage: "delete objects and wait until they are gone",
		ArgsUsage: "KIND NAME... | KIND/NAME... | KIND -l SELECTOR | KIND --all | -f FILE",
		Flags: append(flags,
			&cli.BoolFlag{Name: "all", Usage: "all objects of the kind in the namespace"},
			&cli.BoolFlag{Name: "force", Usage: "without a grace period"},
			&cli.IntFlag{Name: "grace-period", Value: -1, Usage: "`SECONDS` that containers have to end; -1: what the object says"},
			&cli.BoolFlag{Name: "wait", Value: true, Usage: "wait until the objects are gone (--wait=false does not)"},
			&cli.DurationFlag{Name: "timeout", Usage: "how long to wait at most; 0: as long as it takes"},
			&cli.BoolFlag{Name: "ignore-not-found", Usage: "an object that is not there is no error"},
			&cli.BoolFlag{Name: "dry-run", Usage: "say what would be deleted"},
		),
		Action: func(c *cli.Context) error { return p.delete(c) },
	}
}

func (p *program) delete(c *cli.Context) error {
	s, err := p.session(c)
	if err != nil {
		return err
	}
	count := tally{p: p}
	objects, err := s.toDelete(c, &count)
	if err != nil {
		return err
	}
	opts := withDependents()
	if grace := int64(c.Int("grace-period")); c.Bool("force") {
		opts.GracePeriodSeconds = new(int64)
	} else if grace >= 0 {
		opts.GracePeriodSeconds = &grace
	}
	if c.Bool("dry-run") {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	var started []api.Object
	for _, obj := range objects {
		err := s.deleteOne(c, obj, opts)
		if apierrors.IsNotFound(err) && c.Bool("ignore-not-found") {
			continue
		}
		if count.add(err); err == nil {
			started = append(started, obj)
		}
	}
	// All are told to go before the first is waited for: their grace periods run side by side.
	if c.Bool("wait") && !c.Bool("dry-run") {
		deadline := s.now().Add(c.Duration("timeout"))
		for _, obj := range started {
			left := time.Duration(0)
			if c.Duration("timeout") > 0 {
				left = max(deadline.Sub(s.now()), time.Millisecond)
			}
			if err := s.waitGone(c.Context, keyOf(obj), obj.GetUID(), left); err != nil {
				count.add(err)
			}
		}
	}
	return count.err()
}

func (s *session) deleteOne(c *cli.Context, obj api.Object, opts *metav1.DeleteOptions) error {
	kind := api.KindOf(obj)
	if _, err := s.api.Delete(c.Context, keyOf(obj), opts); err != nil {
		return err
	}
	how := "deleted"
	if c.Bool("dry-run") {
		how = "would be deleted (dry run)"
	}
	s.say("%s %q %s", kind.Singular, obj.GetName(), how)
	return nil
}

// toDelete finds what shall be deleted; what is not there is counted.
func (s *session) toDelete(c *cli.Context, count *tally) ([]api.Object, error) {
	if len(c.StringSlice("filename")) > 0 {
		return s.inFiles(c, count)
	}
	targets, err := parseTargets(c.Args().Slice())
	if err != nil {
		return nil, err
	}
	if c.Bool("all") && targets[0].name != "" {
		return nil, usagef("either names or --all")
	}
	var out []api.Object
	for _, t := range targets {
		if t.name == "" {
			found, err := s.chosen(c, t.kind)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
			continue
		}
		obj, err := s.resolve(c.Context, t)
		if codeOf(err) == codeNotFound && c.Bool("ignore-not-found") {
			continue
		}
		if err != nil {
			count.add(err)
			continue
		}
		out = append(out, obj)
	}
	return out, nil
}

// chosen are the objects of a kind that --all or a selector means; it says so if there are none.
func (s *session) chosen(c *cli.Context, kind *api.Kind) ([]api.Object, error) {
	found, err := s.pick(c, []string{kind.GR().String()}, c.Bool("all"))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		opts, _ := s.listOptions(c, kind)
		s.none(kind, opts)
	}
	return found, nil
}

// inFiles are the objects that the manifests of -f name, as far as they are there.
func (s *session) inFiles(c *cli.Context, count *tally) ([]api.Object, error) {
	if args := c.Args().Slice(); len(args) > 1 {
		return nil, usagef("with -f at most a KIND is given: %q is too much", args[1])
	}
	docs, err := s.documents(c, c.Args().First())
	if err != nil {
		return nil, err
	}
	var out []api.Object
	for _, d := range docs {
		obj, err := s.api.Get(c.Context, d.key())
		switch {
		case err == nil:
			out = append(out, obj)
		case apierrors.IsNotFound(err) && c.Bool("ignore-not-found"):
		case apierrors.IsNotFound(err):
			count.add(failf(codeNotFound, "%s not found%s", brief.Ref(d.kind, d.name), brief.Namespace(d.namespace)))
		default:
			count.add(err)
		}
	}
	return out, nil
}

// withDependents deletes what an object owns too, whatever its kind does by itself.
func withDependents() *metav1.DeleteOptions {
	return &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
}

func keyOf(obj api.Object) client.Key { return client.KeyOf(obj) }
