package dialect

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"minik8s/internal/api"
)

// gpuJob makes the words of both seed systems canonical.
//
// The first's is a GpuJob with other names for the numbers. The second's is a Job that names a source file: what its
// programs load, compile and run is always the same, and stands in the canonical form. The partition of both is the
// SlurmCluster's own.
func gpuJob(r *rewriter, doc map[string]any) {
	spec := object(doc["spec"])
	if spec == nil {
		return
	}
	for _, key := range []string{"username", "password"} { // without the value: it may be a password
		if v, ok := spec[key]; ok && v != nil {
			if _, isString := v.(string); !isString {
				r.fail("spec."+key, "expected a string: write it in quotes")
				return
			}
		}
	}
	if hasOne(spec, "numProcess", "numTasksPerNode", "numGpus", "volume") {
		r.firstGpuJob(spec)
	}
	if hasOne(spec, "cuFilePath", "resultFileName", "resultFilePath", "args") {
		r.secondGpuJob(doc, spec)
	}
	for _, key := range []string{"nodes", "tasksPerNode", "cpusPerTask", "gpusPerNode", "gpus"} {
		r.number(spec, "spec", key)
	}
}

func hasOne(m map[string]any, keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { _, ok := m[key]; return ok })
}

func (r *rewriter) firstGpuJob(spec map[string]any) {
	r.move(spec, "spec", "numProcess", "nodes")
	r.move(spec, "spec", "numTasksPerNode", "tasksPerNode")
	r.move(spec, "spec", "numGpus", "gpusPerNode")
	if folder, ok := spec["volume"]; ok {
		if sources := r.below(spec, "sources"); sources != nil {
			r.put(sources, "spec.volume", "spec.sources", "folder", folder)
			delete(spec, "volume")
		}
	}
	r.ones(spec)
}

// secondGpuJob reads a Job with a source file.
func (r *rewriter) secondGpuJob(doc, spec map[string]any) {
	if doc["kind"] == api.Jobs.Kind && spec["cuFilePath"] != nil {
		doc["kind"], doc["apiVersion"] = api.GpuJobs.Kind, api.GpuJobs.APIVersion()
		r.note("kind", "read as %s of %s: it names a source file", api.GpuJobs.Kind, api.GpuJobs.APIVersion())
	}
	r.move(spec, "spec", "resultFilePath", "resultPath")
	r.secondArgs(spec)
	file, isString := spec["cuFilePath"].(string)
	if !isString {
		return
	}
	name, isString := spec["resultFileName"].(string)
	if spec["resultFileName"] == nil {
		name, isString = strings.TrimSuffix(baseName(file), ".cu"), true
	}
	if !isString {
		return
	}
	if sources := r.below(spec, "sources"); sources != nil {
		r.put(sources, "spec.cuFilePath", "spec.sources", "file", file)
		delete(spec, "cuFilePath")
	}
	r.put(spec, "spec.resultFileName", "spec", "outputFile", name+".out")
	r.put(spec, "spec.resultFileName", "spec", "errorFile", name+".err")
	delete(spec, "resultFileName")
	r.put(spec, "spec.cuFilePath", "spec", "modules", []any{"gcc/8.3.0", "cuda/10.1.243-gcc-8.3.0"})
	r.put(spec, "spec.cuFilePath", "spec", "compileScripts", []any{"nvcc " + word(here(baseName(file))) + " -o " + word(here(name)) + " -lcublas"})
	// There a limit that cannot be raised did not end the job; here the first line that fails does.
	r.put(spec, "spec.resultFileName", "spec", "runScripts", []any{"ulimit -s unlimited || :", "ulimit -l unlimited || :", word("./" + name)})
	r.ones(spec)
}

// secondArgs moves what is below args to its place.
func (r *rewriter) secondArgs(spec map[string]any) {
	args, isMap := spec["args"].(map[string]any)
	if !isMap {
		return
	}
	for _, x := range []struct{ from, to string }{{"numTasksPerNode", "tasksPerNode"}, {"cpusPerTask", "cpusPerTask"}, {"gpuResources", "gpusPerNode"}} {
		if value, ok := args[x.from]; ok {
			r.put(spec, "spec.args."+x.from, "spec", x.to, value)
			delete(args, x.from)
		}
	}
	if mail, isMap := args["mail"].(map[string]any); isMap {
		out := map[string]any{}
		if to, ok := mail["userName"].(string); ok {
			if !strings.Contains(to, "@") {
				to += "@sjtu.edu.cn" // as the seed system does
			}
			out["to"] = to
			delete(mail, "userName")
		}
		if when, ok := mail["type"].(string); ok {
			out["types"] = []any{strings.ToUpper(when)}
			delete(mail, "type")
		}
		if len(mail) == 0 && len(out) > 0 {
			r.put(spec, "spec.args.mail", "spec", "mail", out)
			delete(args, "mail")
		}
	}
	if len(args) == 0 {
		delete(spec, "args")
		r.note("spec.args", "what is in it was moved to spec")
	}
}

// ones gives the numbers that both seed systems have as 1.
func (r *rewriter) ones(spec map[string]any) {
	for _, key := range []string{"nodes", "tasksPerNode", "cpusPerTask", "gpusPerNode"} {
		if key == "gpusPerNode" && spec["gpus"] != nil || spec[key] != nil {
			continue
		}
		spec[key] = int64(1)
		r.note("spec."+key, "missing, 1 was filled in")
	}
}

// put sets a field to what another one says. It fails if it has another value already, unless it is older than the patch.
func (r *rewriter) put(m map[string]any, from, path, key string, value any) {
	if there := m[key]; there != nil && there != "" && !r.patched && !equal(there, value) {
		r.fail(from, "it means %s.%s: %v, and that is %v in the manifest", path, key, value, there)
		return
	}
	m[key] = value
	r.note(from, "read as %s.%s", path, key)
}

// equal compares two values of JSON, in which a number has only one form.
func equal(a, b any) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(x) == string(y)
}

// below returns the object in a field, made if there is none; nil if something else is there.
func (*rewriter) below(m map[string]any, key string) map[string]any {
	if m[key] == nil {
		m[key] = map[string]any{}
	}
	return object(m[key])
}

// baseName is the last part of a path of Windows or of Unix.
func baseName(path string) string { return path[strings.LastIndexAny(path, `\/`)+1:] }

// here keeps a program from reading a file's name as an option.
func here(name string) string {
	if strings.HasPrefix(name, "-") {
		return "./" + name
	}
	return name
}

// word returns a word of shell that is the string, whatever is in it.
func word(s string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-/", c)
	}
	if s != "" && !strings.ContainsFunc(s, func(c rune) bool { return !plain(c) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// batchJob makes a Job's template canonical, and refuses the second seed system's, which is of another kind.
func batchJob(r *rewriter, doc map[string]any) {
	spec := object(doc["spec"])
	if spec != nil && spec["cuFilePath"] != nil && spec["template"] == nil {
		r.fail("spec.cuFilePath", "this is a GPU job, a %[1]s of %[2]s: it goes to /apis/%[2]s/namespaces/NAMESPACE/%[3]s; minik8sd ctl apply sends it there as it is, "+
			"and kubectl with apiVersion: %[2]s and kind: %[1]s in the manifest", api.GpuJobs.Kind, api.GpuJobs.APIVersion(), api.GpuJobs.Plural)
		return
	}
	template(r, doc)
}

// jobOf tells the two kinds that a manifest of a Job may be of: Kubernetes' batch Job, and the second seed system's GPU
// job. The error is that it is neither.
func jobOf(doc map[string]any) (*api.Kind, error) {
	spec := object(doc["spec"])
	switch {
	case spec["cuFilePath"] != nil && spec["template"] != nil:
		return nil, errors.New("spec: it has both template, as a batch Job, and cuFilePath, as a GPU job: which is it?")
	case spec["cuFilePath"] != nil:
		return api.GpuJobs, nil
	case spec["template"] != nil:
		return api.Jobs, nil
	}
	return nil, errors.New("spec: it has neither template, as a batch Job, nor cuFilePath, as a GPU job")
}
