package commandline

import (
	"github.com/urfave/cli/v2"
)

// Reorder makes `get pods -A -n x` into what the parser understands: the flags of ctl itself, the
// command, the command's flags, and after "--" the arguments. Flags are written in one way only,
// `--name=value`, so that -f and --filename may both be given. What it does not know it leaves in
// place of a flag, for the parser to refuse by name.
func Reorder(root []cli.Flag, commands []*cli.Command, args []string) []string {
	flags := map[string]flagSpec{}
	learn(flags, root, true)
	at, path, cmd := locate(flags, commands, args)
	if cmd == nil {
		return args
	}
	learn(flags, cmd.Flags, false)
	l := sortWords(flags, at, args)
	if l.help {
		return append(path, "--help")
	}
	out := append(l.root, path...)
	out = append(out, l.own...)
	if len(l.words) > 0 {
		out = append(append(out, "--"), l.words...)
	}
	return out
}

// sortedWords are the words of a command line by what they are.
type sortedWords struct {
	root, own []string // flags of ctl, and of the command
	words     []string // arguments
	help      bool
}

// sortWords tells flags and arguments apart. The words at the places of at name the command itself.
func sortWords(flags map[string]flagSpec, at map[int]bool, args []string) (l sortedWords) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case at[i]:
			continue
		case arg == "--":
			l.words = append(l.words, args[i+1:]...)
			return l
		case !isFlag(arg):
			l.words = append(l.words, arg)
			continue
		}
		found, took := parseFlag(flags, arg, args[i+1:])
		if found == nil {
			l.own = append(l.own, arg)
			continue
		}
		i += took
		for _, f := range found {
			switch {
			case f.name == "help":
				l.help = true
			case f.root:
				l.root = append(l.root, f.text)
			default:
				l.own = append(l.own, f.text)
			}
		}
	}
	return l
}

// locate finds the words of the command: their places in args, the words, and the command itself.
func locate(flags map[string]flagSpec, commands []*cli.Command, args []string) (map[int]bool, []string, *cli.Command) {
	// Before the command is known, any command's flag tells whether it takes a value.
	anyFlag := map[string]flagSpec{}
	learnAll(anyFlag, commands)
	for name, k := range flags {
		anyFlag[name] = k
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
			if _, took := parseFlag(anyFlag, arg, args[i+1:]); took == 1 && !isCommand(commands, args[i+1]) {
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
		learn(anyFlag, cmd.Flags, false)
		if commands = cmd.Subcommands; len(commands) == 0 {
			break
		}
	}
	return at, path, cmd
}

// learnAll learns the flags of all commands, also of those below commands. Where two differ, the one
// with a value wins.
func learnAll(into map[string]flagSpec, commands []*cli.Command) {
	for _, c := range commands {
		own := map[string]flagSpec{}
		learn(own, c.Flags, false)
		for name, k := range own {
			if old, ok := into[name]; !ok || old.bool {
				into[name] = k
			}
		}
		learnAll(into, c.Subcommands)
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
