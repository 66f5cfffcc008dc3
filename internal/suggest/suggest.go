package suggest

import (
	"slices"
	"strings"

	edlib "github.com/hbollon/go-edlib"
)

const (
	// most is how many words are suggested.
	most = 3
	// maxEdits is how many letters of a long word may be wrong, left out, put in, or swapped with the next.
	maxEdits = 3
	// minPrefix is how many letters make a beginning that is worth completing.
	minPrefix = 3
)

// Nearest are the words that may have been meant by one that is none of them: the nearest first, three at most. Near
// are those that differ in a letter for each three of the word, and after them those that begin with it.
func Nearest(word string, words []string) []string {
	type near struct {
		word  string
		edits int
	}
	// A short word is near to everything.
	limit := min(maxEdits, (len(word)+2)/3)
	var found []near
	seen := map[string]bool{word: true}
	for _, w := range words {
		if seen[w] {
			continue
		}
		seen[w] = true
		if edits := edlib.OSADamerauLevenshteinDistance(word, w); edits <= limit {
			found = append(found, near{w, edits})
		} else if len(word) >= minPrefix && strings.HasPrefix(w, word) {
			found = append(found, near{w, maxEdits + 1})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return a.edits - b.edits })
	var out []string
	for _, n := range found[:min(len(found), most)] {
		out = append(out, n.word)
	}
	return out
}
