package commandline

import (
	"github.com/urfave/cli/v2"
)

// Reorder turns words like `get pods -A -n x` into the order that the parser needs: ctl's own flags, the command, the
// command's flags, and after "--" the arguments. All flags are written as `--name=value`, so that -f and --filename may
// both be given. Unknown flags stay among the flags, so that the parser refuses them by name.
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

// sortedWords are the words of a command line, sorted by their role.
type sortedWords struct {
	root, own []string // flags of ctl, and of the command
	words     []string // arguments
	help      bool
}

// sortWords separates flags from arguments. The words at the positions in at name the command itself.
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

// locate finds the words that name the command. It returns their positions in args, the words, and the command.
func locate(flags map[string]flagSpec, commands []*cli.Command, args []string) (map[int]bool, []string, *cli.Command) {
	// While the command is unknown, a flag takes a value if it does so in any command.
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
			// -f takes a file with apply and nothing with logs, so the name of a command is not taken as its value.
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

// learnAll collects the flags of all commands and their subcommands. If two differ, the one with a value wins.
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
