package target

import (
	"strings"

	"minik8s/internal/api"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/suggest"
)

// Kinds reads a list of kinds as people write it: "pods", "po,nodes", "all", "PODS". It fails if one is unknown.
func Kinds(words string) ([]*api.Kind, error) {
	var kinds []*api.Kind
	seen := map[*api.Kind]bool{}
	add := func(k *api.Kind) {
		if !seen[k] {
			seen[k] = true
			kinds = append(kinds, k)
		}
	}
	for _, word := range strings.Split(words, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		if k := api.ByWord(word); k != nil {
			add(k)
			continue
		}
		found := false
		for _, k := range api.Kinds {
			for _, c := range k.Categories {
				if strings.EqualFold(c, word) {
					add(k)
					found = true
				}
			}
		}
		if !found {
			return nil, unknownKind(word)
		}
	}
	if len(kinds) == 0 {
		return nil, exit.Usagef("which kind? One of: %s", KindList())
	}
	return kinds, nil
}

// Kind reads a word that must be one kind. It fails if it is unknown or names several.
func Kind(word string) (*api.Kind, error) {
	kinds, err := Kinds(word)
	if err != nil {
		return nil, err
	}
	if len(kinds) > 1 {
		return nil, exit.Usagef("one kind is needed here, %q is %d", word, len(kinds))
	}
	return kinds[0], nil
}

func unknownKind(word string) error {
	var words []string
	for _, k := range api.Kinds {
		words = append(words, k.Plural, k.Singular)
		words = append(words, k.ShortNames...)
		words = append(words, k.Aliases...)
	}
	hint := ""
	if near := suggest.Nearest(strings.ToLower(word), words); len(near) > 0 {
		hint = " Did you mean " + strings.Join(near, ", ") + "?"
	}
	return exit.Usagef("there is no kind %q.%s\nKinds: %s", word, hint, KindList())
}

// KindList lists all kinds with their short names, for messages.
func KindList() string {
	var out []string
	for _, k := range api.Kinds {
		word := k.Plural
		if len(k.ShortNames) > 0 {
			word += " (" + strings.Join(k.ShortNames, ", ") + ")"
		}
		out = append(out, word)
	}
	return strings.Join(out, ", ")
}
