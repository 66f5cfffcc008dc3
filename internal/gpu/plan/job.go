package plan

import (
	"cmp"
	"path"
	"slices"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/slurm/batch"
)

// Given is what a job needs beside its object.
type Given struct {
	Layout batch.Layout
	Env    []batch.Var // the object's variables, with those of ConfigMaps and Secrets read
	After  []batch.Dependency
}

// Job is the object for Slurm, with the cluster's defaults.
func Job(obj *minik8s.GpuJob, cluster *minik8s.SlurmClusterSpec, g Given) *batch.Job {
	s, d := &obj.Spec, &cluster.Defaults
	j := &batch.Job{
		Title: obj.Namespace + "/" + obj.Name, Name: obj.Name, UID: string(obj.UID), Layout: g.Layout,
		Setup: cluster.Setup, Modules: s.Modules, Env: g.Env,
		Compile: s.CompileScripts, InJob: s.CompileOn == minik8s.CompileOnJob, Run: s.RunScripts,
		Output: OutputFile(obj), Error: ErrorFile(obj), CompileOutput: CompileFile(obj),
		Options: batch.Options{
			Partition: cmp.Or(s.Partition, d.Partition), Account: cmp.Or(s.Account, d.Account), QOS: cmp.Or(s.QOS, d.QOS),
			Nodes: s.Nodes, TasksPerNode: s.TasksPerNode, CPUsPerTask: s.CPUsPerTask,
			GPUsPerNode: s.GPUsPerNode, GPUs: s.GPUs, GPUType: s.GPUType,
			Array: s.Array, Requeue: s.Requeue, Dependencies: g.After, Extra: s.Sbatch,
		},
	}
	if len(j.Modules) == 0 {
		j.Modules = d.Modules
	}
	if s.Memory != nil {
		j.Options.Memory = s.Memory.Value()
	}
	if s.TimeLimit != nil {
		j.Options.TimeLimit = s.TimeLimit.Duration
	}
	if m := s.Mail; m != nil {
		j.Options.MailTo, j.Options.MailTypes = m.To, m.Types
	}
	return j
}

// OutputFile, ErrorFile and CompileFile are what a job prints, below its files; those of an array's task have its number at their ends.
func OutputFile(obj *minik8s.GpuJob) string {
	return path.Clean(cmp.Or(obj.Spec.OutputFile, obj.Name+".out"))
}

// ErrorFile is what it prints as errors.
func ErrorFile(obj *minik8s.GpuJob) string {
	return path.Clean(cmp.Or(obj.Spec.ErrorFile, obj.Name+".err"))
}

// CompileFile is what compiling printed.
func CompileFile(obj *minik8s.GpuJob) string { return obj.Name + ".compile.out" }

// Wanted chooses the files to bring back among those that there are: what the job printed, and its results.
func Wanted(obj *minik8s.GpuJob, names []string) []string {
	var out []string
	for _, n := range names {
		if wanted(obj, n) {
			out = append(out, n)
		}
	}
	return out
}

func wanted(obj *minik8s.GpuJob, name string) bool {
	for _, printed := range []string{OutputFile(obj), ErrorFile(obj), CompileFile(obj)} {
		if name == printed || obj.Spec.Array != "" && isTaskFile(printed, name) {
			return true
		}
	}
	return slices.ContainsFunc(obj.Spec.Results, func(pattern string) bool { return matches(pattern, name) })
}

func matches(pattern, name string) bool {
	if pattern = path.Clean(pattern); pattern == "." {
		return true
	}
	for at := name; at != "."; at = path.Dir(at) { // a folder has all that is below it
		if ok, err := path.Match(pattern, at); err == nil && ok {
			return true
		}
	}
	return false
}

// Unmatched are the patterns of a job's results that no file has.
func Unmatched(obj *minik8s.GpuJob, names []string) (out []string) {
	for _, pattern := range obj.Spec.Results {
		if !slices.ContainsFunc(names, func(name string) bool { return matches(pattern, name) }) {
			out = append(out, pattern)
		}
	}
	return out
}

func isTaskFile(printed, name string) bool {
	if len(name) <= len(printed)+1 || name[:len(printed)+1] != printed+"." {
		return false
	}
	for _, r := range name[len(printed)+1:] {
		if r < '0' || r > '9' {
			return false
		}
	}
	return true
}
