package ctl

import (
	"bufio"
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
)

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
				return usagef("clear takes no arguments; minik8sd ctl delete deletes single objects")
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			return s.clear(c)
		},
	}
}

func (s *session) clear(c *cli.Context) error {
	objects, err := s.userObjects(c.Context)
	if err != nil {
		return err
	}
	if len(objects) == 0 {
		s.say("nothing to delete: no user has made anything")
		return nil
	}
	if !c.Bool("yes") {
		if err := s.ask(objects); err != nil {
			return err
		}
	}
	count := tally{p: s.program}
	var gone []api.Object
	for _, obj := range objects {
		_, err := s.api.Delete(c.Context, keyOf(obj), withDependents())
		// What belonged to something deleted before may have gone along.
		if apierrors.IsNotFound(err) {
			err = nil
		}
		if count.add(err); err == nil {
			s.say("%s deleted%s", refOf(obj), brief.Namespace(obj.GetNamespace()))
			gone = append(gone, obj)
		}
	}
	if c.Bool("wait") {
		for _, obj := range gone {
			if err := s.waitGone(c.Context, keyOf(obj), obj.GetUID(), c.Duration("timeout")); err != nil {
				count.add(err)
			}
		}
	}
	return count.err()
}

// userObjects are the objects that clear deletes: owners before what they own, and namespaces last.
func (s *session) userObjects(ctx context.Context) ([]api.Object, error) {
	var owners, namespaces []api.Object
	for _, kind := range api.Kinds {
		// Events and leases come from the system, and go by themselves.
		if kind == api.Events || kind == api.Leases || (!kind.Namespaced && kind != api.Namespaces) {
			continue
		}
		list, err := s.api.List(ctx, kind, client.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, obj := range list.Items {
			switch {
			case kind == api.Namespaces:
				if name := obj.GetName(); name != metav1.NamespaceDefault && !slices.Contains(api.SystemNamespaces, name) {
					namespaces = append(namespaces, obj)
				}
			case slices.Contains(api.SystemNamespaces, obj.GetNamespace()) || givenBySystem(kind, obj):
			case metav1.GetControllerOf(obj) != nil:
				// Its owner is deleted, and would make it anew before that.
			default:
				owners = append(owners, obj)
			}
		}
	}
	return append(owners, namespaces...), nil
}

// givenBySystem names what appears by itself in every namespace, and again when it is deleted.
func givenBySystem(kind *api.Kind, obj api.Object) bool {
	switch kind.Kind {
	case "ServiceAccount":
		return obj.GetName() == "default"
	case "ConfigMap":
		return obj.GetName() == "kube-root-ca.crt"
	case "Service", "Endpoints", "EndpointSlice":
		return obj.GetNamespace() == metav1.NamespaceDefault && obj.GetName() == "kubernetes"
	}
	return false
}

// ask wants a yes from a person, and without a person --yes.
func (s *session) ask(objects []api.Object) error {
	if !s.inTTY {
		return usagef("this deletes %d objects: say --yes if that is meant", len(objects))
	}
	for i, obj := range objects {
		if i == 20 {
			s.note("  ... and %d more", len(objects)-i)
			break
		}
		s.note("  %s%s", refOf(obj), brief.Namespace(obj.GetNamespace()))
	}
	s.note("Delete these %d objects? This cannot be undone. [y/N]", len(objects))
	line, _ := bufio.NewReader(s.in).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return failf(codeFailed, "nothing was deleted")
}
