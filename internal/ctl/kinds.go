package ctl

import (
	"sort"
	"strings"

	edlib "github.com/hbollon/go-edlib"

	"minik8s/internal/api"
)

// parseKinds reads a list of kinds as people write it: "pods", "po,nodes", "all", "PODS".
func parseKinds(words string) ([]*api.Kind, error) {
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
		return nil, usagef("which kind? One of: %s", kindList())
	}
	return kinds, nil
}

// parseKind reads one kind.
func parseKind(word string) (*api.Kind, error) {
	kinds, err := parseKinds(word)
	if err != nil {
		return nil, err
	}
	if len(kinds) > 1 {
		return nil, usagef("one kind is needed here, %q is %d", word, len(kinds))
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
	if near := similar(strings.ToLower(word), words); len(near) > 0 {
		hint = " Did you mean " + strings.Join(near, ", ") + "?"
	}
	return usagef("there is no kind %q.%s\nKinds: %s", word, hint, kindList())
}

// kindList is every kind with its short names.
func kindList() string {
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

// nearby is how many edits apart two words may be to be taken for one another.
const nearby = 2

// similar finds the words that a person may have meant, the nearest first, three at most.
func similar(word string, words []string) []string {
	type hit struct {
		word string
		far  int
	}
	var hits []hit
	seen := map[string]bool{}
	for _, w := range words {
		if seen[w] || w == word {
			continue
		}
		seen[w] = true
		far := edlib.OSADamerauLevenshteinDistance(word, w)
		// A short word is near to everything: allow an edit for each three letters.
		limit := min(nearby, (len(word)+2)/3)
		if far <= limit {
			hits = append(hits, hit{w, far})
		} else if len(word) >= 3 && strings.HasPrefix(w, word) {
			hits = append(hits, hit{w, nearby + 1})
		}
	}
	sort.SliceStable(hits, func(i, j int) bool { return hits[i].far < hits[j].far })
	var out []string
	for i := 0; i < len(hits) && i < 3; i++ {
		out = append(out, hits[i].word)
	}
	return out
}
