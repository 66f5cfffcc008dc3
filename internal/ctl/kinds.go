package ctl

import (
	"sort"
	"strings"

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
		words = append(words, k.SeedWords...)
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
		far := distance(word, w)
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

// distance is how many letters must be put in, taken out, changed or swapped with their neighbour
// to make b of a.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	d := make([][]int, len(s)+1)
	for i := range d {
		d[i] = make([]int, len(t)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(s); i++ {
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(s)][len(t)]
}
