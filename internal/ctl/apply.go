package ctl

import (
	"encoding/json"
	"time"

	"github.com/urfave/cli/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
)

// manager is who ctl is in an object's field managers.
const manager = "minik8sd-ctl"

func (p *program) applyCommand() *cli.Command {
	return &cli.Command{
		Name: "apply", Usage: "create objects, or change them to what a manifest says", ArgsUsage: "[KIND] -f FILE|FOLDER|URL|-",
		Flags: append(append(fileFlags(), writeFlags()...),
			&cli.BoolFlag{Name: "wait", Usage: "wait until the pods are ready"},
			&cli.DurationFlag{Name: "timeout", Value: 5 * time.Minute, Usage: "how long --wait waits"},
			&cli.BoolFlag{Name: "server-side", Usage: "let the server merge, and keep book of who manages which field"},
			&cli.BoolFlag{Name: "force-conflicts", Usage: "with --server-side: take over fields that others have set otherwise"},
			&cli.StringFlag{Name: "field-manager", Value: manager, Usage: "with --server-side: the `NAME` under which the fields are managed"},
		),
		Action: func(c *cli.Context) error {
			return p.eachDocument(c, (*session).apply)
		},
	}
}

func writeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "dry-run", Usage: "let the server check everything and change nothing"},
		&cli.StringFlag{Name: "validate", Value: "strict", Usage: "`HOW` fields that are not known are taken: strict, warn or ignore"},
	}
}

// eachDocument does one thing with every document of a manifest and says what became of each.
func (p *program) eachDocument(c *cli.Context, do func(*session, *cli.Context, *document) (api.Object, string, error)) error {
	if c.NArg() > 1 {
		return usagef("one KIND at most, and the files with -f: %q is too much", c.Args().Get(1))
	}
	s, err := p.session(c)
	if err != nil {
		return err
	}
	docs, err := s.documents(c, c.Args().First())
	if err != nil {
		return err
	}
	count := tally{p: p}
	var done []api.Object
	for _, d := range docs {
		obj, what, err := do(s, c, d)
		if err == nil {
			if c.Bool("dry-run") {
				what += " (dry run: nothing was changed)"
			}
			s.say("%s %s", brief.Ref(d.kind, obj.GetName()), what)
			done = append(done, obj)
		} else if len(docs) > 1 && codeOf(err) != codeUnreachable {
			err = failf(codeOf(err), "%s: %s", d.source, message(err))
		}
		count.add(err)
		if codeOf(err) == codeUnreachable {
			break
		}
	}
	if c.Bool("wait") && !c.Bool("dry-run") {
		if err := s.waitReady(c.Context, done, c.Duration("timeout")); err != nil {
			count.add(err)
		}
	}
	return count.err()
}

func (s *session) writeOptions(c *cli.Context) (client.WriteOptions, error) {
	opts := client.WriteOptions{DryRun: c.Bool("dry-run"), FieldManager: manager}
	switch c.String("validate") {
	case "strict", "true", "":
		opts.FieldValidation = "Strict"
	case "warn":
		opts.FieldValidation = "Warn"
	case "ignore", "false":
		opts.FieldValidation = "Ignore"
	default:
		return opts, usagef("--validate=%s is not known: strict, warn or ignore", c.String("validate"))
	}
	return opts, nil
}

// apply creates an object or merges the manifest into it: what the manifest says is set, what it
// said at the last apply and says no more is taken out, and the rest stays as others made it.
func (s *session) apply(c *cli.Context, d *document) (api.Object, string, error) {
	opts, err := s.writeOptions(c)
	if err != nil {
		return nil, "", err
	}
	if d.name == "" {
		return nil, "", usagef("apply needs metadata.name; with generateName use minik8sd ctl create -f")
	}
	if c.Bool("server-side") {
		return s.applyServerSide(c, d, opts)
	}
	if c.Bool("force-conflicts") {
		return nil, "", usagef("--force-conflicts needs --server-side: by itself apply asks nobody")
	}
	current, err := s.api.Get(c.Context, d.key())
	if apierrors.IsNotFound(err) {
		obj, err := s.applyNew(c, d, opts)
		if !apierrors.IsAlreadyExists(err) {
			return obj, "created", err
		}
		// Someone was faster, by a moment.
		current, err = s.api.Get(c.Context, d.key())
		if err != nil {
			return nil, "", err
		}
	} else if err != nil {
		return nil, "", err
	}
	patch, err := s.difference(d, current)
	if err != nil {
		return nil, "", err
	}
	if string(patch) == "{}" {
		return current, "unchanged", nil
	}
	obj, err := s.api.Patch(c.Context, d.key(), client.Patch{Type: types.StrategicMergePatchType, Data: patch}, opts)
	if apierrors.IsInvalid(err) && d.kind == api.Pods {
		return nil, "", failf(codeFailed, "%s\nMost of a pod cannot be changed while it lives. To replace it: minik8sd ctl update pod %s%s -f FILE --force",
			message(err), d.name, brief.Namespace(d.namespace))
	}
	if err != nil {
		return nil, "", err
	}
	// Two spellings of one value make a patch that changes nothing.
	if obj.GetResourceVersion() == current.GetResourceVersion() {
		return obj, "unchanged", nil
	}
	return obj, "configured", nil
}

// applyServerSide has the server merge the manifest.
func (s *session) applyServerSide(c *cli.Context, d *document, opts client.WriteOptions) (api.Object, string, error) {
	data, err := json.Marshal(d.canonical)
	if err != nil {
		return nil, "", err
	}
	opts.FieldManager = c.String("field-manager")
	patch := client.Patch{Type: types.ApplyPatchType, Data: data, Force: c.Bool("force-conflicts")}
	obj, err := s.api.Patch(c.Context, d.key(), patch, opts)
	if apierrors.IsConflict(err) {
		return nil, "", failf(codeFailed, "%s\nTo take these fields over: apply once more with --force-conflicts. To leave them to the others: take them out of the manifest.", message(err))
	}
	return obj, "applied", err
}

// applyNew sends a document as it was written: a seed's form is the server's to understand.
func (s *session) applyNew(c *cli.Context, d *document, opts client.WriteOptions) (api.Object, error) {
	doc := d.doc
	if _, ok := doc["metadata"].(map[string]any); !ok {
		// There is no place for the annotation in a form without metadata.
		doc = d.canonical
	}
	body, err := annotated(doc, d.canonical)
	if err != nil {
		return nil, err
	}
	return s.api.CreateRaw(c.Context, d.kind, d.namespace, body, opts)
}

// difference is the patch that brings an object to what the manifest says.
func (s *session) difference(d *document, current api.Object) ([]byte, error) {
	now, err := json.Marshal(current)
	if err != nil {
		return nil, err
	}
	modified, err := annotated(d.canonical, d.canonical)
	if err != nil {
		return nil, err
	}
	original := current.GetAnnotations()[lastApplied]
	if original == "" {
		s.note("%s %s was not made by apply: fields that you take out of its manifest stay until you do so once more",
			s.paintErr(yellow, "warning:"), brief.Ref(d.kind, d.name))
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(d.kind.New())
	if err != nil {
		return nil, err
	}
	return strategicpatch.CreateThreeWayMergePatch([]byte(original), modified, now, schema, true)
}
