package suggest

import (
	"slices"
	"strings"

	edlib "github.com/hbollon/go-edlib"
)

const (
	// most is the maximum number of suggestions.
	most = 3
	// maxEdits is how many letters of a long word may be wrong, missing, extra, or swapped with the next one.
	maxEdits = 3
	// minPrefix is the shortest prefix that is completed.
	minPrefix = 3
)

// longest is the length of the longest word that is compared: the work is the product of both lengths, and words come from clients.
const longest = 200

// Nearest returns the words that may have been meant by an unknown word: the nearest first, at most three. Words are
// near if they differ in at most one letter for each three. Words that begin with the unknown word come after them.
func Nearest(word string, words []string) []string {
	type near struct {
		word  string
		edits int
	}
	// Almost everything is near to a short word, so the limit depends on the length.
	limit := min(maxEdits, (len(word)+2)/3)
	var found []near
	seen := map[string]bool{word: true}
	for _, w := range words {
		if seen[w] || len(word) > longest || len(w) > longest {
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
