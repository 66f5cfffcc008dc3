package commandline

import (
	"sort"
	"strings"

	"github.com/urfave/cli/v2"
)

// Complete lists the possible completions of the word being typed: flags, commands, or the arguments that the command
// takes after the words before it.
func Complete(root []cli.Flag, commands []*cli.Command, before []string, last string, arguments func(command string, words []string) []string) []string {
	cmd, below, words := follow(root, commands, before)
	switch {
	case strings.HasPrefix(last, "-"):
		all := root
		if cmd != nil {
			all = append(append([]cli.Flag{}, cmd.Flags...), all...)
		}
		return matching(flagNames(all), last)
	case cmd == nil || len(below) > 0:
		var names []string
		for _, sub := range below {
			if !sub.Hidden {
				names = append(names, sub.Name)
			}
		}
		return matching(names, last)
	}
	return matching(arguments(cmd.Name, words), last)
}

// follow reads the words before the one being typed and returns the command, its subcommands and its arguments.
func follow(root []cli.Flag, commands []*cli.Command, before []string) (cmd *cli.Command, below []*cli.Command, words []string) {
	flags := map[string]flagSpec{}
	learn(flags, root, true)
	for i := 0; i < len(before); i++ {
		word := before[i]
		if isFlag(word) {
			if cmd != nil {
				learn(flags, cmd.Flags, false)
			}
			_, took := parseFlag(flags, word, before[i+1:])
			i += took
			continue
		}
		var next *cli.Command
		for _, sub := range commands {
			if sub.HasName(word) {
				next = sub
			}
		}
		if next == nil {
			words = append(words, word)
			continue
		}
		cmd, commands = next, next.Subcommands
	}
	return cmd, commands, words
}

func flagNames(flags []cli.Flag) []string {
	var names []string
	for _, f := range flags {
		names = append(names, "--"+f.Names()[0])
	}
	return names
}

func matching(words []string, prefix string) []string {
	var out []string
	for _, w := range words {
		if strings.HasPrefix(w, prefix) {
			out = append(out, w)
		}
	}
	sort.Strings(out)
	return out
}
