package target

import (
	"context"
	"slices"
	"strings"

	"minik8s/internal/api"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/suggest"
)

// Kinds reads a list of kinds as people write it: "pods", "po,nodes", "all", "PODS". A word that is compiled in costs no
// request; others are looked for among the kinds that the server serves. It fails if one is unknown.
func Kinds(ctx context.Context, s *session.Session, words string) ([]*api.Kind, error) {
	var kinds []*api.Kind
	for _, word := range strings.Split(words, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		meant := named(api.Named, word)
		if meant == nil {
			served, err := s.Served(ctx)
			if meant = named(served, word); meant == nil {
				return nil, unknownKind(word, served, err)
			}
		}
		for _, k := range meant {
			if !slices.Contains(kinds, k) {
				kinds = append(kinds, k)
			}
		}
	}
	if len(kinds) == 0 {
		return nil, exit.Usagef("which kind? One of: %s", list(api.Kinds))
	}
	return kinds, nil
}

// named returns the kinds that a word means: one, or those of a category.
func named(among []*api.Kind, word string) (kinds []*api.Kind) {
	if k := api.Find(among, word); k != nil {
		return []*api.Kind{k}
	}
	for _, k := range among {
		if slices.ContainsFunc(k.Categories, func(c string) bool { return strings.EqualFold(c, word) }) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// Kind reads a word that must be one kind. It fails if it is unknown or names several.
func Kind(ctx context.Context, s *session.Session, word string) (*api.Kind, error) {
	kinds, err := Kinds(ctx, s, word)
	if err != nil {
		return nil, err
	}
	if len(kinds) > 1 {
		return nil, exit.Usagef("one kind is needed here, %q is %d", word, len(kinds))
	}
	return kinds[0], nil
}

// unknownKind returns the error for a word that names none of these kinds. asked is why the server could not say
// whether it serves more.
func unknownKind(word string, kinds []*api.Kind, asked error) error {
	var words []string
	for _, k := range kinds {
		words = append(words, k.Plural, k.Singular)
		words = append(words, k.ShortNames...)
		words = append(words, k.Aliases...)
	}
	hint := ""
	if near := suggest.Nearest(strings.ToLower(word), words); len(near) > 0 {
		hint = " Did you mean " + strings.Join(near, ", ") + "?"
	}
	if asked != nil {
		hint += " (Whether the server serves it is not known: " + exit.Message(asked) + ")"
	}
	return exit.Usagef("there is no kind %q.%s\nKinds: %s", word, hint, list(kinds))
}

// list names kinds with their short names, for messages.
func list(kinds []*api.Kind) string {
	var out []string
	for _, k := range kinds {
		word := k.Plural
		if len(k.ShortNames) > 0 {
			word += " (" + strings.Join(k.ShortNames, ", ") + ")"
		}
		out = append(out, word)
	}
	return strings.Join(out, ", ")
}
