package ctl

import (
	"encoding/json"
	"time"

	"github.com/urfave/cli/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
)

func (p *program) updateCommand() *cli.Command {
	return &cli.Command{
		Name: "update", Aliases: []string{"replace"}, Usage: "replace objects by what a manifest says",
		ArgsUsage: "[KIND [NAME]] -f FILE",
		Flags: append(append(fileFlags(), writeFlags()...),
			&cli.BoolFlag{Name: "force", Usage: "delete the object and create it anew, where it cannot be changed"}),
		Action: func(c *cli.Context) error { return p.update(c) },
	}
}

func (p *program) update(c *cli.Context) error {
	if c.NArg() > 2 {
		return usagef("update [KIND [NAME]] -f FILE: %q is too much", c.Args().Get(2))
	}
	s, err := p.session(c)
	if err != nil {
		return err
	}
	docs, err := s.documents(c, c.Args().First())
	if err != nil {
		return err
	}
	if name := c.Args().Get(1); name != "" {
		if len(docs) != 1 {
			return usagef("a NAME was given and the manifest holds %d objects", len(docs))
		}
		obj, err := s.resolve(c.Context, target{docs[0].kind, name})
		if err != nil {
			return err
		}
		if docs[0].name != obj.GetName() || docs[0].namespace != obj.GetNamespace() {
			return usagef("the manifest is of %s%s, and %s%s was said", brief.Ref(docs[0].kind, docs[0].name), brief.Namespace(docs[0].namespace),
				refOf(obj), brief.Namespace(obj.GetNamespace()))
		}
	}
	count := tally{p: p}
	for _, d := range docs {
		obj, what, err := s.replace(c, d)
		if count.add(err); err == nil {
			s.say("%s %s", brief.Ref(d.kind, obj.GetName()), what)
		}
	}
	return count.err()
}

// forceWait is how long a forced update waits for the old object to end.
const forceWait = 2 * time.Minute

// replace writes a document over an object. A resourceVersion in the document guards it.
func (s *session) replace(c *cli.Context, d *document) (api.Object, string, error) {
	opts, err := s.writeOptions(c)
	if err != nil {
		return nil, "", err
	}
	data, err := json.Marshal(d.canonical)
	if err != nil {
		return nil, "", err
	}
	obj := d.kind.New()
	if err := json.Unmarshal(data, obj); err != nil {
		return nil, "", failf(codeFailed, "%s: %v", d.source, err)
	}
	out, err := s.api.Update(c.Context, obj, opts)
	switch {
	case err == nil:
		return out, "replaced", nil
	case apierrors.IsNotFound(err):
		return nil, "", failf(codeNotFound, "%s is not there to be replaced; minik8sd ctl apply creates it", brief.Ref(d.kind, d.name))
	case apierrors.IsConflict(err):
		return nil, "", failf(codeConflict, "%s was changed by someone since: get it anew (minik8sd ctl get %s %s%s -o yaml), or take resourceVersion out of the manifest",
			brief.Ref(d.kind, d.name), d.kind.Singular, d.name, brief.Namespace(d.namespace))
	case !apierrors.IsInvalid(err) || !c.Bool("force") || c.Bool("dry-run"):
		return nil, "", err
	}
	obj.SetResourceVersion("")
	obj.SetUID("")
	// Nothing is deleted for a manifest that could not be created: it is tried under another name first.
	trial := obj.DeepCopyObject().(api.Object)
	trial.SetName("")
	trial.SetGenerateName("trial-")
	if _, err := s.api.Create(c.Context, trial, client.WriteOptions{DryRun: true}); err != nil {
		return nil, "", err
	}
	old, err := s.api.Get(c.Context, d.key())
	if err != nil {
		return nil, "", err
	}
	// Gone first, and wholly: a new object of the name is refused while the old one ends.
	del := withDependents()
	del.Preconditions = metav1.NewUIDPreconditions(string(old.GetUID()))
	if _, err := s.api.Delete(c.Context, d.key(), del); err != nil && !apierrors.IsNotFound(err) {
		return nil, "", err
	}
	if err := s.waitGone(c.Context, d.key(), old.GetUID(), forceWait); err != nil {
		return nil, "", err
	}
	out, err = s.api.Create(c.Context, obj, opts)
	return out, "replaced by a new one", err
}
