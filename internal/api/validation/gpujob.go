package validation

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api/minik8s"
)

// maxGpuJobName leaves room for the UID and the endings after it: they are names of files, and the job's in Slurm's accounting,
// which have 255 bytes.
const maxGpuJobName = 180

// GpuJob checks a GpuJob. What it names need not exist.
func GpuJob(j *minik8s.GpuJob) field.ErrorList {
	var errs field.ErrorList
	if len(j.Name) > maxGpuJobName {
		errs = append(errs, field.TooLong(field.NewPath("metadata", "name"), "", maxGpuJobName))
	}
	s := &j.Spec
	errs = append(errs, nameOf(spec.Child("cluster"), s.Cluster)...)
	errs = append(errs, nameOf(spec.Child("loginSecret"), s.LoginSecret)...)
	errs = append(errs, sources(&s.Sources)...)
	if s.WorkDir != "" {
		errs = append(errs, remotePath(spec.Child("workDir"), s.WorkDir)...)
	}
	errs = append(errs, slurmWords(spec.Child("modules"), s.Modules)...)
	errs = append(errs, shellLines(spec.Child("compileScripts"), s.CompileScripts)...)
	errs = append(errs, oneOf(spec.Child("compileOn"), s.CompileOn, minik8s.CompileOnLogin, minik8s.CompileOnJob)...)
	if len(s.RunScripts) == 0 {
		errs = append(errs, field.Required(spec.Child("runScripts"), "what is to be run, one line of shell each"))
	}
	errs = append(errs, shellLines(spec.Child("runScripts"), s.RunScripts)...)
	errs = append(errs, gpuJobEnv(spec.Child("env"), s.Env)...)
	errs = append(errs, printed(spec.Child("outputFile"), s.OutputFile)...)
	errs = append(errs, printed(spec.Child("errorFile"), s.ErrorFile)...)
	for i, p := range s.Results {
		at := spec.Child("results").Index(i)
		errs = append(errs, remotePath(at, p)...)
		if _, err := path.Match(p, ""); err != nil {
			errs = append(errs, field.Invalid(at, p, "expected a path with * ? and [], and each [ has its ]"))
		}
	}
	errs = append(errs, localPath(spec.Child("resultPath"), s.ResultPath)...)
	errs = append(errs, oneOf(spec.Child("cleanup"), s.Cleanup, minik8s.CleanupOnSuccess, minik8s.CleanupAlways, minik8s.CleanupNever)...)
	return append(errs, asked(j)...)
}

// asked checks what is asked of Slurm.
func asked(j *minik8s.GpuJob) field.ErrorList {
	s := &j.Spec
	errs := slurmWord(spec.Child("partition"), s.Partition)
	errs = append(errs, slurmWord(spec.Child("account"), s.Account)...)
	errs = append(errs, slurmWord(spec.Child("qos"), s.QOS)...)
	errs = append(errs, nonNegative(spec.Child("nodes"), s.Nodes)...)
	errs = append(errs, nonNegative(spec.Child("tasksPerNode"), s.TasksPerNode)...)
	errs = append(errs, nonNegative(spec.Child("cpusPerTask"), s.CPUsPerTask)...)
	errs = append(errs, nonNegative(spec.Child("gpusPerNode"), s.GPUsPerNode)...)
	errs = append(errs, nonNegative(spec.Child("gpus"), s.GPUs)...)
	if s.GPUs > 0 && s.GPUsPerNode > 0 {
		errs = append(errs, field.Forbidden(spec.Child("gpus"), "may not be set beside gpusPerNode: one is for the whole job, the other for each node"))
	}
	switch {
	case s.GPUType == "":
	case !gpuType.MatchString(s.GPUType):
		errs = append(errs, field.Invalid(spec.Child("gpuType"), s.GPUType, "must be one word of letters, digits, _ . + and -"))
	case s.GPUs == 0 && s.GPUsPerNode == 0:
		errs = append(errs, field.Required(spec.Child("gpusPerNode"), "gpuType is that of cards: how many? Or set gpus"))
	}
	if s.Memory != nil && s.Memory.Sign() <= 0 {
		errs = append(errs, field.Invalid(spec.Child("memory"), s.Memory.String(), "must be more than 0"))
	}
	if s.TimeLimit != nil && s.TimeLimit.Duration < time.Second {
		errs = append(errs, field.Invalid(spec.Child("timeLimit"), s.TimeLimit.Duration.String(), "must be at least 1s"))
	}
	if s.Array != "" {
		errs = append(errs, slurmArray(spec.Child("array"), s.Array)...)
	}
	errs = append(errs, dependencies(j)...)
	if m := s.Mail; m != nil {
		if at := spec.Child("mail", "to"); m.To == "" {
			errs = append(errs, field.Required(at, "an address"))
		} else if !mailAddress.MatchString(m.To) {
			errs = append(errs, field.Invalid(at, m.To, "must be an address, as in me@example.com"))
		}
		for i, t := range m.Types {
			errs = append(errs, oneOf(spec.Child("mail", "types").Index(i), t, mailTypes...)...)
		}
	}
	for i, o := range s.Sbatch {
		errs = append(errs, sbatchOption(spec.Child("sbatch").Index(i), o)...)
	}
	return errs
}

func dependencies(j *minik8s.GpuJob) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i, d := range j.Spec.DependsOn {
		at := spec.Child("dependsOn").Index(i)
		switch {
		case d.Name == "":
			errs = append(errs, field.Required(at.Child("name"), "the name of a GpuJob"))
		case d.Name == j.Name:
			errs = append(errs, field.Invalid(at.Child("name"), d.Name, "a job cannot wait for itself"))
		case names[d.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), d.Name))
		default:
			errs = append(errs, nameOf(at.Child("name"), d.Name)...)
		}
		names[d.Name] = true
		errs = append(errs, oneOf(at.Child("when"), d.When, "after", "afterany", "afternotok", "afterok")...)
	}
	return errs
}

func sources(s *minik8s.GpuJobSources) field.ErrorList {
	at := spec.Child("sources")
	errs := localPath(at.Child("folder"), s.Folder)
	errs = append(errs, localPath(at.Child("file"), s.File)...)
	errs = append(errs, nameOf(at.Child("configMap"), s.ConfigMap)...)
	files := map[string]bool{}
	for i := range s.Files {
		p, at := s.Files[i].Path, at.Child("files").Index(i).Child("path")
		switch {
		case p == "":
			errs = append(errs, field.Required(at, "the file's name"))
		case p == ".":
			errs = append(errs, field.Invalid(at, p, "must be the path of a file"))
		case files[p]:
			errs = append(errs, field.Duplicate(at, p))
		default:
			errs = append(errs, remotePath(at, p)...)
		}
		files[p] = true
	}
	for i := range s.Files {
		for dir := path.Dir(s.Files[i].Path); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if files[dir] {
				errs = append(errs, field.Invalid(at.Child("files").Index(i).Child("path"), s.Files[i].Path, dir+" is a file, too"))
			}
		}
	}
	return errs
}

// nameOf checks the name of another object, if there is one.
func nameOf(at *field.Path, name string) field.ErrorList {
	if name == "" {
		return nil
	}
	return say(at, name, apivalidation.NameIsDNSSubdomain(name, false))
}

// remotePath checks a path below the job's folder.
func remotePath(at *field.Path, p string) field.ErrorList {
	refuse := func(detail string) field.ErrorList { return field.ErrorList{field.Invalid(at, p, detail)} }
	switch {
	case p == "":
		return field.ErrorList{field.Required(at, "a path below the job's folder")}
	case !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl):
		return refuse("must have no line breaks and no other control characters")
	case strings.HasPrefix(p, "/"):
		return refuse("must be a path below the job's folder, without a slash at its beginning")
	case slices.Contains(strings.Split(p, "/"), ".."):
		return refuse("must not lead out of the job's folder: it has a \"..\"")
	case strings.Contains(p, `\`): // Slurm would read it in the name of a file
		return refuse("must have no backslash: folders are parted by /")
	case path.Clean(p) != p:
		return refuse(fmt.Sprintf("write it as %q", path.Clean(p)))
	case len(p) > 1024 || slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return len(part) > 200 }):
		return refuse("must have at most 1024 bytes, and 200 in each of its parts")
	}
	return nil
}

// printed checks the name of a file that gets what the job prints, if there is one.
func printed(at *field.Path, p string) field.ErrorList {
	switch p {
	case "":
		return nil
	case ".":
		return field.ErrorList{field.Invalid(at, p, "must be the path of a file")}
	}
	return remotePath(at, p)
}

// localPath checks a path of the machine of the person who applies the job, which may run Windows.
func localPath(at *field.Path, p string) field.ErrorList {
	if !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl) {
		return field.ErrorList{field.Invalid(at, p, "must have no line breaks and no other control characters")}
	}
	return nil
}

// shellName is what a shell can export.
var shellName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// bashOwn are variables that bash lets nobody set.
var bashOwn = []string{"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"}

func gpuJobEnv(at *field.Path, list []corev1.EnvVar) field.ErrorList {
	list = slices.Clone(list)
	var errs field.ErrorList
	for i := range list {
		e, at := &list[i], at.Index(i)
		if v := e.ValueFrom; v != nil && (v.FieldRef != nil || v.ResourceFieldRef != nil || v.FileKeyRef != nil) {
			errs = append(errs, field.Forbidden(at.Child("valueFrom"), "a job on another cluster has no pod: set configMapKeyRef or secretKeyRef"))
			e.ValueFrom = nil
		}
		switch name := e.Name; {
		case name == "":
		case !shellName.MatchString(name):
			errs = append(errs, field.Invalid(at.Child("name"), name, "must be a name that a shell can export: letters, digits and _, and no digit first"))
		case strings.HasPrefix(name, "SLURM_") || strings.HasPrefix(name, "SBATCH_"):
			errs = append(errs, field.Invalid(at.Child("name"), name, "must not begin with SLURM_ or SBATCH_: these are Slurm's own"))
		case slices.Contains(bashOwn, name):
			errs = append(errs, field.Invalid(at.Child("name"), name, "bash lets nobody set it"))
		}
		if strings.ContainsRune(e.Value, 0) {
			errs = append(errs, field.Invalid(at.Child("value"), "", "must not contain NUL"))
		}
	}
	return append(errs, env(list, at)...)
}

// GpuJobUpdate checks that only what is read at the end changes.
func GpuJobUpdate(j, old *minik8s.GpuJob) field.ErrorList {
	now, was := j.Spec, old.Spec
	now.Cleanup, now.Results = was.Cleanup, was.Results
	if apiequality.Semantic.DeepEqual(now, was) {
		return nil
	}
	return field.ErrorList{field.Forbidden(spec, "is immutable but for cleanup and results, as what runs elsewhere would not follow: delete the job, and create it anew")}
}

// GpuJobStatusUpdate checks the conditions and the numbers.
func GpuJobStatusUpdate(j, _ *minik8s.GpuJob) field.ErrorList {
	at, s := field.NewPath("status"), &j.Status
	errs := metav1validation.ValidateConditions(s.Conditions, at.Child("conditions"))
	errs = append(errs, nonNegative(at.Child("restarts"), s.Restarts)...)
	if r := s.Results; r != nil {
		errs = append(errs, nonNegative(at.Child("results", "files"), r.Files)...)
		errs = append(errs, nonNegative(at.Child("results", "bytes"), r.Bytes)...)
	}
	return errs
}

// maxLogin is how long a username or a password may be, in bytes.
const maxLogin = 4096

// GpuJobLogin checks the username and password of a manifest. No error has either.
func GpuJobLogin(s *minik8s.GpuJobSpec) field.ErrorList {
	var errs field.ErrorList
	for _, x := range []struct{ name, value, other string }{{"username", s.Username, "password"}, {"password", s.Password, "username"}} {
		at := spec.Child(x.name)
		switch {
		case x.value == "":
			errs = append(errs, field.Required(at, x.other+" is set: set both, or loginSecret"))
		case len(x.value) > maxLogin:
			errs = append(errs, field.TooLong(at, "", maxLogin))
		case strings.ContainsFunc(x.value, unicode.IsControl):
			errs = append(errs, field.Invalid(at, "", "must have no control characters"))
		}
	}
	return errs
}
