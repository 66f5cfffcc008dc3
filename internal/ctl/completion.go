package ctl

import (
	"context"
	"sort"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// The scripts ask the program itself what may come next: `ctl __complete WORD... LAST`, where LAST
// is the word that is being typed and may be empty.
var completionScripts = map[string]string{
	"bash": `_minik8sd_complete() {
    [ "${COMP_WORDS[1]}" = ctl ] || { [ "$COMP_CWORD" -eq 1 ] && COMPREPLY=($(compgen -W ctl -- "${COMP_WORDS[1]}")); return; }
    local IFS=$'\n'
    COMPREPLY=($("${COMP_WORDS[0]}" ctl __complete -- "${COMP_WORDS[@]:2:COMP_CWORD-1}" 2>/dev/null))
}
complete -o default -F _minik8sd_complete minik8sd
`,
	"zsh": `#compdef minik8sd
_minik8sd() {
    if (( CURRENT == 2 )); then compadd ctl; return; fi
    [[ ${words[2]} == ctl ]] || return
    local -a found
    found=(${(f)"$(${words[1]} ctl __complete -- "${(@)words[3,CURRENT]}" 2>/dev/null)"})
    (( ${#found} )) && compadd -a found || _files
}
compdef _minik8sd minik8sd
`,
	"fish": `function __minik8sd_complete
    set -l words (commandline -opc) (commandline -ct)
    test "$words[2]" = ctl; and $words[1] ctl __complete -- $words[3..-1] 2>/dev/null
end
complete -c minik8sd -n 'test (count (commandline -opc)) -eq 1' -a ctl
complete -c minik8sd -n 'test (count (commandline -opc)) -gt 1' -a '(__minik8sd_complete)'
`,
}

func (p *program) completionCommand() *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print a script that completes commands and names in a shell", ArgsUsage: "bash|zsh|fish",
		Description: "bash: source <(minik8sd ctl completion bash)\nzsh:  source <(minik8sd ctl completion zsh)\n" +
			"fish: minik8sd ctl completion fish | source",
		Action: func(c *cli.Context) error {
			script, ok := completionScripts[c.Args().First()]
			if !ok {
				return usagef("completion for which shell? bash, zsh or fish")
			}
			_, err := p.out.Write([]byte(script))
			return err
		},
	}
}

func (p *program) completeCommand() *cli.Command {
	return &cli.Command{
		Name: "__complete", Hidden: true,
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if len(words) == 0 {
				words = []string{""}
			}
			for _, word := range p.complete(c, words[:len(words)-1], words[len(words)-1]) {
				p.say("%s", word)
			}
			return nil
		},
	}
}

// completeIn bounds how long a person waits for a key to answer.
const completeIn = time.Second

// complete lists what the word that is being typed may become.
func (p *program) complete(c *cli.Context, before []string, last string) []string {
	commands := c.App.Commands
	var cmd *cli.Command
	var words []string
	flags := map[string]known{}
	learn(flags, c.App.Flags, true)
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
	switch {
	case strings.HasPrefix(last, "-"):
		all := c.App.Flags
		if cmd != nil {
			all = append(append([]cli.Flag{}, cmd.Flags...), all...)
		}
		return matching(flagNames(all), last)
	case cmd == nil || len(commands) > 0:
		var names []string
		for _, sub := range commands {
			if !sub.Hidden {
				names = append(names, sub.Name)
			}
		}
		return matching(names, last)
	}
	return matching(p.arguments(c, cmd.Name, words), last)
}

// arguments are the kinds, or the names of a kind's objects, where a command wants one.
func (p *program) arguments(c *cli.Context, command string, words []string) []string {
	var kind *api.Kind
	switch command {
	case "completion":
		return []string{"bash", "zsh", "fish"}
	case "logs":
		kind = api.Pods
	case "cordon", "uncordon":
		kind = api.Nodes
	case "get", "describe", "delete", "why", "label", "annotate", "apply", "create", "update":
		if len(words) == 0 {
			var kinds []string
			for _, k := range api.Kinds {
				kinds = append(kinds, k.Plural)
			}
			return kinds
		}
		kind = api.ByWord(words[0])
	}
	if kind == nil {
		return nil
	}
	s, err := p.session(c)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.Context, completeIn)
	defer cancel()
	list, err := s.api.List(ctx, kind, client.ListOptions{Namespace: s.place(kind)})
	if err != nil {
		return nil
	}
	var names []string
	for _, obj := range list.Items {
		names = append(names, obj.GetName())
	}
	return names
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
