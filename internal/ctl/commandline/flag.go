package commandline

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// flagSpec is what reordering needs to know of a flag.
type flagSpec struct {
	name string // the first of its names
	bool bool   // takes no value
	root bool   // belongs before the command
}

func learn(into map[string]flagSpec, flags []cli.Flag, root bool) {
	for _, f := range flags {
		_, isBool := f.(*cli.BoolFlag)
		for _, name := range f.Names() {
			into[name] = flagSpec{name: f.Names()[0], bool: isBool, root: root}
		}
	}
	into["help"] = flagSpec{name: "help", bool: true}
	into["h"] = into["help"]
}

func isFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// parsedFlag is a flag in the form that the parser gets.
type parsedFlag struct {
	flagSpec
	text string
}

// parseFlag reads the flags in one word ("-A", "--tail=3", "-oyaml", "-fp"). It also returns how many of the following
// words it used as a value: 0 or 1. nil means that the flag is unknown.
func parseFlag(flags map[string]flagSpec, arg string, rest []string) ([]parsedFlag, int) {
	body := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
	name, value, has := strings.Cut(body, "=")
	if k, ok := flags[name]; ok {
		return oneFlag(k, value, has, rest)
	}
	if strings.HasPrefix(arg, "--") {
		return nil, 0
	}
	// Several single-letter flags in one word: only the last may have a value.
	var out []parsedFlag
	for i, letter := range body {
		k, ok := flags[string(letter)]
		if !ok {
			return nil, 0
		}
		if k.bool {
			out = append(out, parsedFlag{flagSpec: k, text: "--" + k.name})
			continue
		}
		value := strings.TrimPrefix(body[i+len(string(letter)):], "=")
		last, took := oneFlag(k, value, value != "", rest)
		return append(out, last...), took
	}
	return out, 0
}

func oneFlag(k flagSpec, value string, has bool, rest []string) ([]parsedFlag, int) {
	switch {
	case has:
		return []parsedFlag{{k, "--" + k.name + "=" + value}}, 0
	case k.bool || len(rest) == 0:
		return []parsedFlag{{k, "--" + k.name}}, 0
	}
	return []parsedFlag{{k, "--" + k.name + "=" + rest[0]}}, 1
}
