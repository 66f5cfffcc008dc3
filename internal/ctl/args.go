package ctl

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// known is what reorder has to know of a flag.
type known struct {
	name string // the first of its names
	bool bool   // takes no value
	root bool   // stands before the command
}

// reorder makes `get pods -A -n x` into what the parser understands: the flags of ctl itself, the
// command, the command's flags, and after "--" the arguments. Flags are written in one way only,
// `--name=value`, so that -f and --filename may both be given. What it does not know it leaves in
// place of a flag, for the parser to refuse by name.
func reorder(root []cli.Flag, commands []*cli.Command, args []string) []string {
	flags := map[string]known{}
	learn(flags, root, true)
	at, path, cmd := locate(flags, commands, args)
	if cmd == nil {
		return args
	}
	learn(flags, cmd.Flags, false)
	var before, after, words []string
	help := false
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case at[i]:
			continue
		case arg == "--":
			words = append(words, args[i+1:]...)
			i = len(args)
			continue
		case !isFlag(arg):
			words = append(words, arg)
			continue
		}
		found, took := parseFlag(flags, arg, args[i+1:])
		if found == nil {
			after = append(after, arg)
			continue
		}
		i += took
		for _, f := range found {
			switch {
			case f.name == "help":
				help = true
			case f.root:
				before = append(before, f.text)
			default:
				after = append(after, f.text)
			}
		}
	}
	if help {
		return append(path, "--help")
	}
	out := append(before, path...)
	out = append(out, after...)
	if len(words) > 0 {
		out = append(append(out, "--"), words...)
	}
	return out
}

// locate finds the words of the command: their places in args, the words, and the command itself.
func locate(flags map[string]known, commands []*cli.Command, args []string) (map[int]bool, []string, *cli.Command) {
	// Before the command is known, any command's flag tells whether it takes a value.
	guess := map[string]known{}
	suspect(guess, commands)
	for name, k := range flags {
		guess[name] = k
	}
	at, path := map[int]bool{}, []string(nil)
	var cmd *cli.Command
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			break
		}
		if isFlag(arg) {
			// -f takes a file with apply and nothing with logs: a command's name is not its value.
			if _, took := parseFlag(guess, arg, args[i+1:]); took == 1 && !isCommand(commands, args[i+1]) {
				i++
			}
			continue
		}
		var next *cli.Command
		for _, c := range commands {
			if c.HasName(arg) {
				next = c
			}
		}
		if next == nil {
			break
		}
		at[i], path, cmd = true, append(path, arg), next
		learn(guess, cmd.Flags, false)
		if commands = cmd.Subcommands; len(commands) == 0 {
			break
		}
	}
	return at, path, cmd
}

// suspect learns the flags of all commands, also of those below commands. Where two differ, the one
// with a value wins.
func suspect(into map[string]known, commands []*cli.Command) {
	for _, c := range commands {
		own := map[string]known{}
		learn(own, c.Flags, false)
		for name, k := range own {
			if old, ok := into[name]; !ok || old.bool {
				into[name] = k
			}
		}
		suspect(into, c.Subcommands)
	}
}

func isCommand(commands []*cli.Command, word string) bool {
	for _, c := range commands {
		if c.HasName(word) {
			return true
		}
	}
	return false
}

func learn(into map[string]known, flags []cli.Flag, root bool) {
	for _, f := range flags {
		_, isBool := f.(*cli.BoolFlag)
		for _, name := range f.Names() {
			into[name] = known{name: f.Names()[0], bool: isBool, root: root}
		}
	}
	into["help"] = known{name: "help", bool: true}
	into["h"] = into["help"]
}

func isFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// written is a flag as the parser shall see it.
type written struct {
	known
	text string
}

// parseFlag reads the flags in one word ("-A", "--tail=3", "-oyaml", "-fp"), and says how many of
// the words that follow it took as a value: 0 or 1. nil means that it is not known.
func parseFlag(flags map[string]known, arg string, rest []string) ([]written, int) {
	body := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
	name, value, has := strings.Cut(body, "=")
	if k, ok := flags[name]; ok {
		return oneFlag(k, value, has, rest)
	}
	if strings.HasPrefix(arg, "--") {
		return nil, 0
	}
	// A word of single letters, of which only the last may take a value.
	var out []written
	for i, letter := range body {
		k, ok := flags[string(letter)]
		if !ok {
			return nil, 0
		}
		if k.bool {
			out = append(out, written{known: k, text: "--" + k.name})
			continue
		}
		value := strings.TrimPrefix(body[i+len(string(letter)):], "=")
		last, took := oneFlag(k, value, value != "", rest)
		return append(out, last...), took
	}
	return out, 0
}

func oneFlag(k known, value string, has bool, rest []string) ([]written, int) {
	switch {
	case has:
		return []written{{k, "--" + k.name + "=" + value}}, 0
	case k.bool || len(rest) == 0:
		return []written{{k, "--" + k.name}}, 0
	}
	return []written{{k, "--" + k.name + "=" + rest[0]}}, 1
}
