package batch

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Job is a job as Slurm is told of it.
type Job struct {
	// Title is for people who read the scripts: namespace/name.
	Title string
	// Name and UID are those of the job: together they are its name for Slurm, by which it is found again.
	Name, UID string
	// Layout says where it lies on the login node.
	Layout Layout

	Setup   []string // lines of shell before everything
	Modules []string
	Env     []Var
	Compile []string // lines of shell
	InJob   bool     // compiles in the job, and not on the login node
	Run     []string // lines of shell

	// Output, Error and CompileOutput are the files, below the job's files, that get what is printed.
	Output, Error, CompileOutput string
	Options                      Options
}

// Var is a variable of the environment.
type Var struct{ Name, Value string }

// Options are what is asked of Slurm. What is empty or 0 is not asked for.
type Options struct {
	Partition, Account, QOS string
	Nodes, TasksPerNode     int32
	CPUsPerTask             int32
	GPUsPerNode, GPUs       int32
	GPUType                 string
	Memory                  int64 // bytes, of each node
	TimeLimit               time.Duration
	Array                   string
	Requeue                 *bool
	Dependencies            []Dependency
	MailTo                  string
	MailTypes               []string
	Extra                   []string // further options, whole
}

// Dependency is a job that comes first.
type Dependency struct{ When, ID string }

// SlurmName is the job's name in Slurm's lists.
func (j *Job) SlurmName() string { return j.Name + "." + j.UID }

// UIDOf returns the UID in a name that SlurmName made; false for the names of others' jobs.
func UIDOf(slurmName string) (string, bool) {
	i := strings.LastIndexByte(slurmName, '.')
	if i < 0 || len(slurmName)-i-1 != 36 || strings.Count(slurmName[i:], "-") != 4 {
		return "", false
	}
	return slurmName[i+1:], true
}

// Layout is where a job lies on the login node. Base is absolute.
type Layout struct{ Base, Name, UID string }

// Folder is the job's own.
func (l Layout) Folder() string { return l.Base + "/jobs/" + l.Name + "." + l.UID }

// Files is where its files are and its scripts run.
func (l Layout) Files() string { return l.Folder() + "/files" }

// Marks is where jobs leave word of what has happened.
func (l Layout) Marks() string { return l.Base + "/marks" }

// Args are the arguments of sbatch for the job. The error says which value Slurm cannot be given.
func (j *Job) Args() ([]string, error) {
	o := &j.Options
	args := []string{
		"--parsable", "--job-name=" + j.SlurmName(), "--comment=minik8s:" + j.UID,
		"--chdir=" + j.Layout.Files(),
		"--output=" + noPercent(j.Layout.Files()+"/"+j.Output), "--error=" + noPercent(j.Layout.Files()+"/"+j.Error),
		"--open-mode=append", // a job that is queued again goes on in the same file
	}
	if o.Array != "" { // each task has files of its own
		args[4], args[5] = args[4]+".%a", args[5]+".%a"
	}
	add := func(name, value string) {
		if value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	number := func(name string, n int32) {
		if n > 0 {
			add(name, strconv.Itoa(int(n)))
		}
	}
	add("partition", o.Partition)
	add("account", o.Account)
	add("qos", o.QOS)
	number("nodes", o.Nodes)
	number("ntasks-per-node", o.TasksPerNode)
	number("cpus-per-task", o.CPUsPerTask)
	kind := ""
	if o.GPUType != "" {
		kind = o.GPUType + ":"
	}
	if o.GPUsPerNode > 0 {
		add("gres", fmt.Sprintf("gpu:%s%d", kind, o.GPUsPerNode))
	}
	if o.GPUs > 0 {
		add("gpus", fmt.Sprintf("%s%d", kind, o.GPUs))
	}
	if o.Memory > 0 {
		add("mem", strconv.FormatInt((o.Memory+(1<<20)-1)>>20, 10)+"M")
	}
	add("time", Limit(o.TimeLimit))
	add("array", o.Array)
	if o.Requeue != nil {
		args = append(args, map[bool]string{true: "--requeue", false: "--no-requeue"}[*o.Requeue])
	}
	var deps []string
	for _, d := range o.Dependencies {
		deps = append(deps, d.When+":"+d.ID)
	}
	if len(deps) > 0 {
		add("dependency", strings.Join(deps, ","))
		args = append(args, "--kill-on-invalid-dep=yes") // or it would wait for ever
	}
	add("mail-user", o.MailTo)
	if o.MailTo != "" {
		add("mail-type", strings.Join(o.MailTypes, ","))
	}
	args = append(args, o.Extra...)
	for _, a := range args {
		if strings.ContainsFunc(a, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return nil, fmt.Errorf("%s: an option of sbatch has no line breaks and no other control characters", Quote(a))
		}
	}
	return args, nil
}

// noPercent keeps Slurm from replacing %j and the like in a file's name.
func noPercent(path string) string { return strings.ReplaceAll(path, "%", "%%") }

// Limit is a time limit as Slurm writes it: days-hours:minutes:seconds; "" for none.
func Limit(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	s := int64((d + time.Second - 1) / time.Second)
	return fmt.Sprintf("%d-%02d:%02d:%02d", s/86400, s/3600%24, s/60%60, s%60)
}

// plain are words that mean themselves in every shell.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// Quote returns a word of shell that is the string, whatever is in it. NUL cannot be in any word, and is left out.
func Quote(s string) string {
	if plain.MatchString(s) {
		return s
	}
	s = strings.ReplaceAll(s, "\x00", "")
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// QuoteAll quotes words and sets spaces between them.
func QuoteAll(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = Quote(w)
	}
	return strings.Join(out, " ")
}
