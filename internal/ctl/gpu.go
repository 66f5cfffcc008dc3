package ctl

import (
	"net/url"
	"strings"

	"github.com/urfave/cli/v2"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/gpujob"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/target"
)

func (p *program) gpuCommand() *cli.Command {
	return &cli.Command{
		Name: "gpu", Usage: "files of GPU jobs, their sources and scripts; keys of login nodes, and logins",
		ArgsUsage: "JOB [-d DIR] [-f FILE] | push JOB FOLDER | script JOB | trust SLURMCLUSTER | login SLURMCLUSTER",
		Description: "Without -f it lists the files of a job: on the cluster while it runs, then those that came back. With -f it\n" +
			"downloads one, with --all all of them. login opens the connection to a centre where a person has to answer, as for a\n" +
			"one-time password; it then stands until it breaks.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Aliases: []string{"d"}, Value: "./", Usage: "the folder `DIR` of the job's files"},
			&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "download `FILE`"},
			&cli.BoolFlag{Name: "all", Usage: "download all files"},
			&cli.StringFlag{Name: "to", Value: ".", Usage: "download into the folder `TO` of this machine"},
			&cli.StringFlag{Name: "secret", Usage: "with login: log in by the Secret `NAME`, as a job may that has its own"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "with trust: confirm without asking"},
		},
		Action: func(c *cli.Context) error {
			args := c.Args().Slice()
			s, err := p.session(c)
			if err != nil {
				return err
			}
			switch {
			case len(args) == 3 && args[0] == "push":
				j, err := gpuJob(c, s, args[1])
				if err != nil {
					return err
				}
				return gpujob.Push(c.Context, s, j, args[2])
			case len(args) == 2 && args[0] == "script":
				j, err := gpuJob(c, s, args[1])
				if err != nil {
					return err
				}
				text, err := gpujob.Script(c.Context, s, j)
				if err == nil {
					s.Say("%s", text)
				}
				return err
			case len(args) == 2 && (args[0] == "trust" || args[0] == "login"):
				obj, err := target.Resolve(c.Context, s, target.Target{Kind: api.SlurmClusters, Name: args[1]})
				if err != nil {
					return err
				}
				if args[0] == "login" {
					return gpujob.Login(c.Context, s, obj.(*minik8s.SlurmCluster), c.String("secret"))
				}
				return gpujob.Trust(c.Context, s, obj.(*minik8s.SlurmCluster), c.Bool("yes"))
			case len(args) != 1:
				return exit.Usagef("gpu %s", c.Command.ArgsUsage)
			}
			j, err := gpuJob(c, s, args[0])
			switch dir := c.String("dir"); {
			case err != nil:
				return err
			case c.Bool("all"):
				return gpujob.FetchAll(c.Context, s, j, c.String("to"))
			case c.String("file") != "":
				return gpujob.Fetch(c.Context, s, j, dir+"/"+c.String("file"), c.String("to"))
			default:
				return gpujob.List(c.Context, s, j, dir)
			}
		},
	}
}

func gpuJob(c *cli.Context, s *session.Session, name string) (*minik8s.GpuJob, error) {
	obj, err := target.Resolve(c.Context, s, target.Target{Kind: api.GpuJobs, Name: name})
	if err != nil {
		return nil, err
	}
	return obj.(*minik8s.GpuJob), nil
}

// gpuLogs prints the log of a job that is named as in logs gpujob/NAME; false if the argument names something else.
func gpuLogs(c *cli.Context, s *session.Session, arg string) (bool, error) {
	word, name, ok := strings.Cut(arg, "/")
	if !ok {
		return false, nil
	}
	if kind, err := target.Kind(c.Context, s, word); err != nil || kind != api.GpuJobs {
		return false, nil //nolint:nilerr // it is the namespace of a pod
	}
	j, err := gpuJob(c, s, name)
	if err != nil {
		return true, err
	}
	all, query := logQuery(c), url.Values{}
	for _, name := range []string{"follow", "tailLines"} {
		if v := all.Get(name); v != "" {
			query.Set(name, v)
		}
	}
	if task := c.Args().Get(1); task != "" {
		query.Set("task", task)
	}
	return true, gpujob.Logs(c.Context, s, j, query)
}

// gpuWritten does what belongs to writing a GPU job: it uploads the sources or, if nothing was changed, shows the script.
func gpuWritten(c *cli.Context, s *session.Session, obj api.Object) error {
	j, ok := obj.(*minik8s.GpuJob)
	if !ok {
		return nil
	}
	if !c.Bool("dry-run") {
		return gpujob.Sources(c.Context, s, j)
	}
	text, err := gpujob.Script(c.Context, s, j)
	if err == nil {
		s.Say("%s", text)
	}
	return err
}
