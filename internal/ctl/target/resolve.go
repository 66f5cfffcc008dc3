package target

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/suggest"
)

var uidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// Resolve finds an object by NAME, NAMESPACE/NAME or UID.
func Resolve(ctx context.Context, s *session.Session, t Target) (api.Object, error) {
	obj, err := find(ctx, s, t)
	if apierrors.IsNotFound(err) {
		return nil, notFound(ctx, s, keyOf(s, t))
	}
	return obj, err
}

// find is Resolve without advice about what may have been meant.
func find(ctx context.Context, s *session.Session, t Target) (api.Object, error) {
	if uidForm.MatchString(strings.ToLower(t.Name)) {
		list, err := s.API.List(ctx, t.Kind, client.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, obj := range list.Items {
			if strings.EqualFold(string(obj.GetUID()), t.Name) {
				return obj, nil
			}
		}
	}
	return s.API.Get(ctx, keyOf(s, t))
}

// keyOf returns the key for NAME or NAMESPACE/NAME.
func keyOf(s *session.Session, t Target) client.Key {
	key := client.Key{Kind: t.Kind, Namespace: s.NamespaceFor(t.Kind), Name: t.Name}
	if ns, name, ok := strings.Cut(t.Name, "/"); ok {
		key.Name = name
		if t.Kind.Namespaced {
			key.Namespace = ns
		}
	}
	return key
}

// notFound returns an error that an object does not exist, with the names that may have been meant.
func notFound(ctx context.Context, s *session.Session, key client.Key) error {
	text := key.Kind.Singular + " " + strconv.Quote(key.Name) + " not found"
	if key.Kind.Namespaced {
		text += " in namespace " + strconv.Quote(key.Namespace)
	}
	list, err := s.API.List(ctx, key.Kind, client.ListOptions{})
	if err != nil {
		return exit.Failf(exit.NotFound, "%s", text)
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
	return exit.Failf(exit.NotFound, "%s", text)
}

// Pod finds a pod by NAME, NAMESPACE/NAME, pod/NAME or UID.
func Pod(ctx context.Context, s *session.Session, name string) (*corev1.Pod, error) {
	if word, rest, ok := strings.Cut(name, "/"); ok && api.ByWord(word) == api.Pods {
		name = rest
	}
	obj, err := Resolve(ctx, s, Target{Kind: api.Pods, Name: name})
	if err != nil {
		return nil, err
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, exit.Failf(exit.Failed, "the server's answer is no pod")
	}
	return pod, nil
}
