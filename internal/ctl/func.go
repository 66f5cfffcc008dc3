package ctl

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/functions"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/stream"
	"minik8s/internal/function/plan"
)

// firstInstances come with a function that is added here, as with the seed system whose command this is. They go when idle.
const firstInstances = 2

func (p *program) funcCommand() *cli.Command {
	name := &cli.StringFlag{Name: "func", Aliases: []string{"f"}, Usage: "the function's `NAME`, which may also be an argument"}
	program := []cli.Flag{name,
		&cli.StringFlag{Name: "path", Aliases: []string{"p"}, Usage: "its Python `FILE`, or a folder with a main.py and what that imports"},
		&cli.StringFlag{Name: "version", Usage: "v1: a fresh process for each call; v2: instances serve many"},
		&cli.StringFlag{Name: "prerun", Usage: "a shell script `FILE` that each instance runs first"},
		&cli.IntFlag{Name: "timeout", Usage: "how many `SECONDS` a call may take"},
		&cli.IntFlag{Name: "concurrency", Usage: "how many calls an instance has at a time, at most"},
		&cli.IntFlag{Name: "min", Usage: "how many instances are always there"},
		&cli.IntFlag{Name: "max", Usage: "how many instances there are at most"},
		&cli.StringFlag{Name: "address", Usage: "an `ADDRESS` of its own, by which pods and nodes call it: http://ADDRESS/; Auto: any that is free"},
		&cli.StringSliceFlag{Name: "env", Aliases: []string{"e"}, Usage: "a variable `NAME=VALUE`"},
	}
	call := []cli.Flag{
		&cli.StringFlag{Name: "data", Aliases: []string{"d"}, Usage: "the argument: JSON for main(params), text for run(arg)"},
		&cli.BoolFlag{Name: "async", Usage: "do not wait: print the call's id"},
		&cli.DurationFlag{Name: "wait", Usage: "wait so long for the result, then print the call's id; 0: as long as the call may take"},
	}
	return &cli.Command{
		Name: "func", Usage: "functions: add, update and remove them, call them, see their results and what they print",
		ArgsUsage: "add | update | rm | get | call | result | calls | top | logs",
		Subcommands: []*cli.Command{
			{Name: "add", Usage: "make a function of a Python file", ArgsUsage: "NAME -p FILE", Action: p.funcAdd,
				Flags: append(program, &cli.IntFlag{Name: "initial", Value: firstInstances, Usage: "how many instances come with it; they go when idle"})},
			{Name: "update", Usage: "give a function another file; new calls get it at once", ArgsUsage: "NAME -p FILE", Flags: program, Action: p.funcUpdate},
			{Name: "rm", Aliases: []string{"delete", "del"}, Usage: "remove a function", ArgsUsage: "NAME", Flags: []cli.Flag{name}, Action: p.funcRemove},
			{Name: "get", Usage: "list functions", ArgsUsage: "[NAME...]", Flags: getFlags(), Action: func(c *cli.Context) error {
				return p.get(c, append([]string{api.Functions.Plural}, c.Args().Slice()...))
			}},
			{Name: "call", Usage: "call a function and print its result", ArgsUsage: "NAME [ARGUMENT]", Flags: call, Action: func(c *cli.Context) error { return p.funcCall(c, false) }},
			{Name: "calls", Usage: "who has called a function and waited, and how the last such calls went", ArgsUsage: "NAME", Flags: []cli.Flag{name}, Action: p.funcCalls},
			{Name: "result", Usage: "print the result of a call: for a time of one that was not waited for, and of the last ones that were", ArgsUsage: "ID", Action: p.funcResult,
				Flags: []cli.Flag{&cli.BoolFlag{Name: "wait", Usage: "wait until there is one"}}},
			{Name: "top", Usage: "calls, errors, times, cold starts and instances of functions, since the leading master began to lead", ArgsUsage: "[NAME...]",
				Flags: []cli.Flag{&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "of all namespaces"}}, Action: p.funcTop},
			{Name: "logs", Usage: "print what a function's instances wrote", ArgsUsage: "NAME", Action: p.funcLogs},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c.Command.Subcommands, c.Args().First())
			}
			return cli.ShowSubcommandHelp(c)
		},
	}
}

func (p *program) triggerCommand() *cli.Command {
	return &cli.Command{
		Name: "trigger", Usage: "call a function, and say so", ArgsUsage: "NAME -d JSON",
		Flags:  []cli.Flag{&cli.StringFlag{Name: "data", Aliases: []string{"d"}, Usage: "the argument: JSON for main(params), text for run(arg)"}},
		Action: func(c *cli.Context) error { return p.funcCall(c, true) },
	}
}

// funcName is the function that a command is about, by the flag or the first argument, and the arguments after it.
func (p *program) funcName(c *cli.Context) (s *session.Session, namespace, name string, rest []string, err error) {
	rest = c.Args().Slice()
	if name = c.String("func"); name == "" && len(rest) > 0 {
		name, rest = rest[0], rest[1:]
	}
	if name == "" {
		return nil, "", "", nil, exit.Usagef("%s %s: which function?", c.Command.HelpName, c.Command.ArgsUsage)
	}
	if s, err = p.session(c); err != nil {
		return nil, "", "", nil, err
	}
	namespace = s.NamespaceFor(api.Functions)
	if ns, n, ok := strings.Cut(name, "/"); ok {
		namespace, name = ns, n
	}
	return s, namespace, name, rest, nil
}

// funcSpec sets what flags say.
func funcSpec(c *cli.Context) (func(*minik8s.FunctionSpec), error) {
	preRun := ""
	if file := c.String("prerun"); file != "" {
		source, _, err := functions.Read(file)
		if err != nil {
			return nil, err
		}
		preRun = source
	}
	var env [][2]string
	for _, e := range c.StringSlice("env") {
		k, v, ok := strings.Cut(e, "=")
		if !ok || k == "" {
			return nil, exit.Usagef("--env %q: expected NAME=VALUE", e)
		}
		env = append(env, [2]string{k, v})
	}
	return func(s *minik8s.FunctionSpec) {
		if c.IsSet("address") {
			s.Address = c.String("address")
		}
		if c.IsSet("version") {
			s.Version = c.String("version")
		}
		if preRun != "" {
			s.PreRun = preRun
		}
		for name, field := range map[string]*int32{"timeout": &s.TimeoutSeconds, "concurrency": &s.Concurrency, "min": &s.MinInstances, "max": &s.MaxInstances, "initial": &s.InitialInstances} {
			if c.IsSet(name) {
				*field = int32(c.Int(name))
			}
		}
		if c.IsSet("concurrency") {
			s.TargetConcurrency = 0 // its part of the other
		}
		for _, e := range env {
			s.Env = setEnv(s.Env, e[0], e[1])
		}
	}, nil
}

func (p *program) funcAdd(c *cli.Context) error {
	s, namespace, name, rest, err := p.funcName(c)
	if err != nil {
		return err
	}
	if len(rest) > 0 || c.String("path") == "" {
		return exit.Usagef("func add NAME -p FILE")
	}
	change, err := funcSpec(c)
	if err != nil {
		return err
	}
	return functions.Add(c.Context, s, namespace, name, c.String("path"), func(spec *minik8s.FunctionSpec) {
		spec.InitialInstances = int32(c.Int("initial"))
		change(spec)
	})
}

func (p *program) funcUpdate(c *cli.Context) error {
	s, namespace, name, rest, err := p.funcName(c)
	if err != nil {
		return err
	}
	if len(rest) > 0 || c.String("path") == "" {
		return exit.Usagef("func update NAME -p FILE")
	}
	change, err := funcSpec(c)
	if err != nil {
		return err
	}
	return functions.Update(c.Context, s, namespace, name, c.String("path"), change)
}

func (p *program) funcRemove(c *cli.Context) error {
	s, namespace, name, _, err := p.funcName(c)
	if err != nil {
		return err
	}
	if _, err := s.API.Delete(c.Context, client.Key{Kind: api.Functions, Namespace: namespace, Name: name}, nil); err != nil {
		return err
	}
	s.Say("function %q removed", name)
	return nil
}

// funcCall calls a function. aloud: as the first seed system's command prints it.
func (p *program) funcCall(c *cli.Context, aloud bool) error {
	s, namespace, name, rest, err := p.funcName(c)
	if err != nil {
		return err
	}
	body := c.String("data")
	switch {
	case len(rest) == 1 && !c.IsSet("data"):
		body = rest[0]
	case len(rest) > 0:
		return exit.Usagef("%s %s", c.Command.HelpName, c.Command.ArgsUsage)
	}
	query := url.Values{}
	switch {
	case c.Bool("async"):
		query.Set("wait", "0s")
	case c.Duration("wait") > 0:
		query.Set("wait", c.Duration("wait").String())
	}
	text, waiting, err := functions.Call(c.Context, s, namespace, name, []byte(body), query)
	if !aloud {
		if err == nil {
			s.Say("%s", text)
		}
		return err
	}
	s.Say("URL: http://localhost:8081/%s\nCalled function %s:", name, name)
	switch {
	case err != nil:
		return fmt.Errorf("error: %w", err)
	case waiting:
		s.Say("it still runs: %s", text)
	default:
		s.Say("result: %s", text)
	}
	return nil
}

func (p *program) funcResult(c *cli.Context) error {
	if c.Args().Len() != 1 {
		return exit.Usagef("func result ID")
	}
	s, err := p.session(c)
	if err != nil {
		return err
	}
	namespace, id := s.NamespaceFor(api.FunctionCalls), c.Args().First()
	for {
		text, waiting, err := functions.Result(c.Context, s, namespace, id)
		switch {
		case err != nil:
			return err
		case !waiting:
			s.Say("%s", text)
			return nil
		case !c.Bool("wait"):
			return exit.Failf(1, "call %s has no result yet (func result --wait waits)", id)
		case !s.Sleep(c.Context, 200*time.Millisecond):
			return nil
		}
	}
}

func (p *program) funcCalls(c *cli.Context) error {
	s, namespace, name, _, err := p.funcName(c)
	if err != nil {
		return err
	}
	return functions.Calls(c.Context, s, namespace, name)
}

func (p *program) funcTop(c *cli.Context) error {
	s, err := p.session(c)
	if err != nil {
		return err
	}
	namespace := s.NamespaceFor(api.Functions)
	if c.Bool("all-namespaces") {
		namespace = ""
	}
	return functions.Top(c.Context, s, namespace, c.Args().Slice())
}

func (p *program) funcLogs(c *cli.Context) error {
	s, namespace, name, _, err := p.funcName(c)
	if err != nil {
		return err
	}
	if _, err := s.API.Get(c.Context, client.Key{Kind: api.Functions, Namespace: namespace, Name: name}); err != nil {
		return err
	}
	list, err := s.API.List(c.Context, api.Pods, client.ListOptions{Namespace: namespace, Labels: labels.SelectorFromSet(labels.Set{minik8s.FunctionLabel: plan.Derived(name)})})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		fmt.Fprintf(s.Err, "function %s has no instances at this moment\n", name)
	}
	for _, pod := range list.Items {
		fmt.Fprintf(s.Err, "==> %s <==\n", pod.GetName())
		if err := stream.Logs(c.Context, s, pod.(*corev1.Pod), "function", url.Values{}); err != nil {
			return err
		}
	}
	return nil
}

// setEnv sets a variable, in its place if it is there.
func setEnv(env []corev1.EnvVar, name, value string) []corev1.EnvVar {
	for i := range env {
		if env[i].Name == name {
			env[i] = corev1.EnvVar{Name: name, Value: value}
			return env
		}
	}
	return append(env, corev1.EnvVar{Name: name, Value: value})
}
