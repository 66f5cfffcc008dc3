package ctl

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/gpujob"
	"minik8s/internal/ctl/manifest"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/target"
	"minik8s/internal/ctl/wait"
)

func fileFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f", "file", "filePath"},
			Usage: "a `FILE`, folder, URL, or - for standard input; may be given several times"},
		&cli.BoolFlag{Name: "recursive", Aliases: []string{"R"}, Usage: "folders with all that is below them"},
	}
}

func writeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "dry-run", Usage: "let the server check everything and change nothing"},
		&cli.StringFlag{Name: "validate", Value: "strict", Usage: "`HOW` fields that are not known are taken: strict, warn or ignore"},
	}
}

// documents reads the files of -f. The first argument may name their kind.
func documents(c *cli.Context, s *session.Session) ([]*manifest.Document, error) {
	return manifest.Read(c.Context, s, manifest.Files{Names: c.StringSlice("filename"), Recursive: c.Bool("recursive")}, c.Args().First())
}

// manifestOptions returns how to write documents, from the flags.
func manifestOptions(c *cli.Context) manifest.Options {
	return manifest.Options{DryRun: c.Bool("dry-run"), Validation: c.String("validate"), ServerSide: c.Bool("server-side"),
		ForceConflicts: c.Bool("force-conflicts"), FieldManager: c.String("field-manager"), Recreate: c.Bool("force")}
}

// podsTimeout is how long apply --wait waits for pods.
const podsTimeout = 5 * time.Minute

func (p *program) applyCommand() *cli.Command {
	return &cli.Command{
		Name: "apply", Usage: "create objects, or change them to what a manifest says", ArgsUsage: "[KIND] -f FILE|FOLDER|URL|-",
		Flags: append(append(fileFlags(), writeFlags()...),
			&cli.BoolFlag{Name: "wait", Usage: "wait until the pods are ready, and GPU jobs over and their results here"},
			&cli.DurationFlag{Name: "timeout", Value: podsTimeout, Usage: "how long --wait waits; for GPU jobs the default is as long as they take"},
			&cli.BoolFlag{Name: "server-side", Usage: "let the server merge, and keep book of who manages which field"},
			&cli.BoolFlag{Name: "force-conflicts", Usage: "with --server-side: take over fields that others have set otherwise"},
			&cli.StringFlag{Name: "field-manager", Value: session.Manager, Usage: "with --server-side: the `NAME` under which the fields are managed"},
		),
		Action: func(c *cli.Context) error { return p.eachDocument(c, manifest.Apply) },
	}
}

func (p *program) createCommand() *cli.Command {
	return &cli.Command{
		Name: "create", Usage: "create objects; fails for those that exist", ArgsUsage: "[KIND] -f FILE|FOLDER|URL|-",
		Flags:  append(fileFlags(), writeFlags()...),
		Action: func(c *cli.Context) error { return p.eachDocument(c, manifest.Create) },
	}
}

// writer writes one document. It returns the object and a word for what it did: "created".
type writer func(context.Context, *session.Session, *manifest.Document, manifest.Options) (api.Object, string, error)

// eachDocument writes every document of a manifest and prints what it did with each.
func (p *program) eachDocument(c *cli.Context, write writer) error {
	if c.NArg() > 1 {
		return exit.Usagef("one KIND at most, and the files with -f: %q is too much", c.Args().Get(1))
	}
	s, err := p.session(c)
	if err != nil {
		return err
	}
	docs, err := documents(c, s)
	if err != nil {
		return err
	}
	return p.write(c, s, docs, write)
}

// write writes documents, and says what became of each.
func (p *program) write(c *cli.Context, s *session.Session, docs []*manifest.Document, write writer) error {
	count := s.Tally()
	var done []api.Object
	for _, d := range docs {
		obj, what, err := write(c.Context, s, d, manifestOptions(c))
		if err == nil {
			if c.Bool("dry-run") {
				what += " (dry run: nothing was changed)"
			}
			s.Say("%s %s", brief.Ref(d.Kind, obj.GetName()), what)
			done = append(done, obj)
			err = gpuWritten(c, s, obj)
		} else if len(docs) > 1 && exit.CodeOf(err) != exit.Unreachable {
			err = exit.Failf(exit.CodeOf(err), "%s: %s", d.Source, exit.Message(err))
		}
		count.Add(err)
		if exit.CodeOf(err) == exit.Unreachable {
			break
		}
	}
	if c.Bool("wait") && !c.Bool("dry-run") {
		if err := wait.Ready(c.Context, s, done, c.Duration("timeout")); err != nil {
			count.Add(err)
		}
		for _, obj := range done {
			if j, ok := obj.(*minik8s.GpuJob); ok {
				limit := time.Duration(0) // a job may wait for its cards for days
				if c.IsSet("timeout") {
					limit = c.Duration("timeout")
				}
				count.Add(gpujob.Wait(c.Context, s, j, limit))
			}
		}
	}
	return count.Err()
}

func (p *program) updateCommand() *cli.Command {
	return &cli.Command{
		Name: "update", Aliases: []string{"replace"}, Usage: "replace objects by what a manifest says",
		ArgsUsage: "[KIND [NAME]] -f FILE",
		Flags: append(append(fileFlags(), writeFlags()...),
			&cli.BoolFlag{Name: "force", Usage: "delete the object and create it anew, where it cannot be changed"}),
		Action: p.update,
	}
}

func (p *program) update(c *cli.Context) error {
	if c.NArg() > 2 {
		return exit.Usagef("update [KIND [NAME]] -f FILE: %q is too much", c.Args().Get(2))
	}
	s, err := p.session(c)
	if err != nil {
		return err
	}
	docs, err := documents(c, s)
	if err != nil {
		return err
	}
	if name := c.Args().Get(1); name != "" {
		if err := checkName(c.Context, s, docs, name); err != nil {
			return err
		}
	}
	count := s.Tally()
	for _, d := range docs {
		obj, what, err := manifest.Replace(c.Context, s, d, manifestOptions(c))
		if count.Add(err); err == nil {
			s.Say("%s %s", brief.Ref(d.Kind, obj.GetName()), what)
		}
	}
	return count.Err()
}

// checkName returns an error unless the manifest contains just the named object.
func checkName(ctx context.Context, s *session.Session, docs []*manifest.Document, name string) error {
	if len(docs) != 1 {
		return exit.Usagef("a NAME was given and the manifest holds %d objects", len(docs))
	}
	d := docs[0]
	obj, err := target.Resolve(ctx, s, target.Target{Kind: d.Kind, Name: name})
	if err != nil {
		return err
	}
	if d.Name != obj.GetName() || d.Namespace != obj.GetNamespace() {
		return exit.Usagef("the manifest is of %s%s, and %s%s was said", brief.Ref(d.Kind, d.Name), brief.Namespace(d.Namespace),
			brief.RefOf(obj), brief.Namespace(obj.GetNamespace()))
	}
	return nil
}
