package ctl

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/suggest"
)

// target is what an argument names: an object, or with no name all of a kind.
type target struct {
	kind *api.Kind
	name string
}

// parseTargets reads KINDS, KIND NAME..., or KIND/NAME...
func parseTargets(args []string) ([]target, error) {
	if len(args) == 0 {
		return nil, usagef("which kind? One of: %s", kindList())
	}
	var out []target
	if word, _, ok := strings.Cut(args[0], "/"); ok && !strings.Contains(word, ",") {
		for _, arg := range args {
			word, name, ok := strings.Cut(arg, "/")
			if !ok || name == "" {
				return nil, usagef("%q is no KIND/NAME, as the other arguments are", arg)
			}
			kind, err := parseKind(word)
			if err != nil {
				return nil, err
			}
			out = append(out, target{kind, name})
		}
		return out, nil
	}
	kinds, err := parseKinds(args[0])
	if err != nil {
		return nil, err
	}
	if len(args) == 1 {
		for _, k := range kinds {
			out = append(out, target{kind: k})
		}
		return out, nil
	}
	if len(kinds) > 1 {
		return nil, usagef("a name needs one kind: %q are %d; write KIND/NAME for each", args[0], len(kinds))
	}
	for _, name := range args[1:] {
		// "pod pod/web" is what one pastes from another command's output.
		if word, rest, ok := strings.Cut(name, "/"); ok && api.ByWord(word) == kinds[0] {
			name = rest
		}
		out = append(out, target{kinds[0], name})
	}
	return out, nil
}

var uidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// place is the namespace to look in; empty for kinds that have none.
func (s *session) place(kind *api.Kind) string {
	if !kind.Namespaced {
		return ""
	}
	return s.namespace
}

// resolve finds the object that a person means by NAME, NAMESPACE/NAME or a UID.
func (s *session) resolve(ctx context.Context, t target) (api.Object, error) {
	if uidForm.MatchString(strings.ToLower(t.name)) {
		list, err := s.api.List(ctx, t.kind, client.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, obj := range list.Items {
			if strings.EqualFold(string(obj.GetUID()), t.name) {
				return obj, nil
			}
		}
	}
	key := s.key(t)
	obj, err := s.api.Get(ctx, key)
	if apierrors.IsNotFound(err) {
		return nil, s.notFound(ctx, key)
	}
	return obj, err
}

// key is where NAME or NAMESPACE/NAME is.
func (s *session) key(t target) client.Key {
	key := client.Key{Kind: t.kind, Namespace: s.place(t.kind), Name: t.name}
	if ns, name, ok := strings.Cut(t.name, "/"); ok {
		key.Name = name
		if t.kind.Namespaced {
			key.Namespace = ns
		}
	}
	return key
}

// notFound says that an object is not there, and which ones a person may have meant.
func (s *session) notFound(ctx context.Context, key client.Key) error {
	text := key.Kind.Singular + " " + strconv.Quote(key.Name) + " not found"
	if key.Kind.Namespaced {
		text += " in namespace " + strconv.Quote(key.Namespace)
	}
	list, err := s.api.List(ctx, key.Kind, client.ListOptions{})
	if err != nil {
		return failf(codeNotFound, "%s", text)
	}
	var names, elsewhere []string
	for _, obj := range list.Items {
		switch {
		case obj.GetNamespace() == key.Namespace:
			names = append(names, obj.GetName())
		case obj.GetName() == key.Name:
			elsewhere = append(elsewhere, obj.GetNamespace())
		}
	}
	switch near := suggest.Nearest(key.Name, names); {
	case len(elsewhere) > 0:
		text += "; there is one in namespace " + strings.Join(elsewhere, ", ") + ": add -n " + elsewhere[0]
	case len(near) > 0:
		text += "; did you mean " + strings.Join(near, ", ") + "?"
	case len(names) == 0:
		text += "; there are no " + key.Kind.Plural + " at all"
		if key.Kind.Namespaced {
			text += " in it (-A shows those of all namespaces)"
		}
	default:
		text += "; minik8sd ctl get " + key.Kind.Plural + " lists what there is"
	}
	return failf(codeNotFound, "%s", text)
}

// selectFlags choose several objects.
func selectFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "only those with these labels: `K=V,K2!=V2,K3`"},
		&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "in all namespaces"},
	}
}

// listOptions are those that the flags of selectFlags ask for.
func (s *session) listOptions(c *cli.Context, kind *api.Kind) (client.ListOptions, error) {
	opts := client.ListOptions{Namespace: s.place(kind)}
	if c.Bool("all-namespaces") {
		opts.Namespace = ""
	}
	var err error
	if text := c.String("selector"); text != "" {
		if opts.Labels, err = labels.Parse(text); err != nil {
			return opts, usagef("the selector %q: %v", text, err)
		}
	}
	if text := c.String("field-selector"); text != "" {
		if opts.Fields, err = fields.ParseSelector(text); err != nil {
			return opts, usagef("the field selector %q: %v", text, err)
		}
	}
	return opts, nil
}

// pick finds the objects that arguments and flags name. Without a name or a selector all of a kind
// are meant, which needs all to be true.
func (s *session) pick(c *cli.Context, args []string, all bool) ([]api.Object, error) {
	targets, err := parseTargets(args)
	if err != nil {
		return nil, err
	}
	var out []api.Object
	count := tally{p: s.program}
	for _, t := range targets {
		if t.name != "" {
			obj, err := s.resolve(c.Context, t)
			count.add(err)
			if err == nil {
				out = append(out, obj)
			}
			continue
		}
		if !all && c.String("selector") == "" {
			return nil, usagef("which %s? Give a name, a selector (-l), or --all", t.kind.Singular)
		}
		opts, err := s.listOptions(c, t.kind)
		if err != nil {
			return nil, err
		}
		list, err := s.api.List(c.Context, t.kind, opts)
		if err != nil {
			return nil, err
		}
		out = append(out, list.Items...)
	}
	return out, count.err()
}

// refOf is ref of a decoded object.
func refOf(obj api.Object) string {
	kind := api.KindOf(obj)
	if kind == nil {
		return obj.GetName()
	}
	return brief.Ref(kind, obj.GetName())
}
