package describe

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/api/table"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/gpujob"
	"minik8s/internal/ctl/session"
)

func writeGpuJob(ctx context.Context, s *session.Session, out *sheet, j *minik8s.GpuJob) error {
	spec, status := &j.Spec, &j.Status
	out.field("UID", string(j.UID))
	out.field("Cluster", or(status.Cluster, spec.Cluster))
	if spec.LoginSecret != "" {
		out.field("Login", "Secret "+spec.LoginSecret)
	}
	out.lines("Sources", sourcesOf(j))
	out.lines("Modules", spec.Modules)
	out.field("Compile On", spec.CompileOn)
	script(out, "Compile", spec.CompileScripts)
	script(out, "Run", spec.RunScripts)
	var env []string
	for _, e := range spec.Env {
		value := brief.Clip(e.Value, 200)
		if e.ValueFrom != nil {
			value = "<" + source(e.ValueFrom) + ">"
		}
		env = append(env, e.Name+"="+value)
	}
	if len(env) > 0 {
		out.lines("Environment", env)
	}
	out.lines("Asked of Slurm", askedOf(spec))
	out.field("Output", or(spec.OutputFile, j.Name+".out"))
	out.field("Errors", or(spec.ErrorFile, j.Name+".err"))
	if len(spec.Results) > 0 {
		out.lines("Results", spec.Results)
	}
	if spec.ResultPath != "" {
		out.field("Results Go To", spec.ResultPath)
	}
	out.field("Cleanup", spec.Cleanup)

	out.field("State", status.State)
	if status.Reason != "" {
		out.field("Reason", status.Reason)
	}
	out.field("Job ID", status.JobID)
	out.field("Nodes", status.NodeList)
	if status.Folder != "" {
		out.field("Folder", status.Folder)
	}
	for _, t := range []struct {
		name string
		at   *metav1.Time
	}{{"Submitted", status.SubmitTime}, {"Started", status.StartTime}, {"Ended", status.EndTime}} {
		if t.at != nil {
			out.field(t.name, s.When(*t.at))
		}
	}
	if text := table.ExitText(status); text != "" {
		out.field("Exit Code", text)
	}
	if status.Restarts > 0 {
		out.field("Queued Again", fmt.Sprintf("%d times", status.Restarts))
	}
	if t := status.Tasks; t != nil {
		out.field("Tasks", fmt.Sprintf("%d pending, %d running, %d succeeded, %d failed", t.Pending, t.Running, t.Succeeded, t.Failed))
	}
	if r := status.Results; r != nil {
		out.field("Came Back", fmt.Sprintf("%d files, %d bytes, on %s", r.Files, r.Bytes, r.Master))
	}
	writeConditions(out, status.Conditions)
	text, err := gpujob.Script(ctx, s, j)
	if err != nil {
		text = err.Error()
	}
	out.line("Script:")
	out.block("  ", text)
	return nil
}

// or is cmp.Or for two strings.
func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// script writes lines of shell, which may themselves have several lines.
func script(out *sheet, name string, lines []string) {
	if len(lines) == 0 {
		return
	}
	out.line("%s:", name)
	for _, l := range lines {
		out.block("  ", brief.Clip(l, 500))
	}
}

func sourcesOf(j *minik8s.GpuJob) []string {
	var out []string
	add := func(what, value string) {
		if value != "" {
			out = append(out, what+" "+value)
		}
	}
	s := &j.Spec.Sources
	add("folder", s.Folder)
	add("file", s.File)
	add("ConfigMap", s.ConfigMap)
	for i := range s.Files {
		out = append(out, fmt.Sprintf("%s (%d bytes, in the manifest)", s.Files[i].Path, len(s.Files[i].Content)))
	}
	if len(out) > 0 {
		add("into", j.Spec.WorkDir)
	}
	return out
}

// askedOf are the options of sbatch that a job's fields mean.
func askedOf(s *minik8s.GpuJobSpec) []string {
	var out []string
	add := func(name, value string) {
		if value != "" {
			out = append(out, name+"="+value)
		}
	}
	number := func(name string, n int32) {
		if n > 0 {
			add(name, fmt.Sprint(n))
		}
	}
	add("partition", s.Partition)
	add("account", s.Account)
	add("qos", s.QOS)
	number("nodes", s.Nodes)
	number("tasks per node", s.TasksPerNode)
	number("CPUs per task", s.CPUsPerTask)
	number("GPUs per node", s.GPUsPerNode)
	number("GPUs", s.GPUs)
	add("type of GPU", s.GPUType)
	if s.Memory != nil {
		add("memory", s.Memory.String())
	}
	if s.TimeLimit != nil {
		add("time limit", s.TimeLimit.Duration.String())
	}
	add("array", s.Array)
	if s.Requeue != nil {
		add("requeue", fmt.Sprint(*s.Requeue))
	}
	for _, d := range s.DependsOn {
		add(d.When, d.Name)
	}
	if m := s.Mail; m != nil {
		add("mail", strings.TrimSpace(m.To+" "+strings.Join(m.Types, ",")))
	}
	return append(out, s.Sbatch...)
}

func writeSlurmCluster(out *sheet, c *minik8s.SlurmCluster) {
	s := &c.Spec
	out.field("UID", string(c.UID))
	writeHost(out, &s.SSHHost)
	if s.Jump != nil {
		out.line("Jump:")
		out.indented("  ", func() { writeHost(out, s.Jump) })
	}
	out.field("Folder", s.Folder)
	out.field("Asked Every", fmt.Sprintf("%d s", s.PollSeconds))
	script(out, "Setup", s.Setup)
	d := &s.Defaults
	for _, x := range []struct{ name, value string }{{"Partition", d.Partition}, {"Account", d.Account}, {"QOS", d.QOS}} {
		if x.value != "" {
			out.field(x.name, x.value)
		}
	}
	if len(d.Modules) > 0 {
		out.lines("Modules", d.Modules)
	}
	for _, k := range c.Status.PresentedKeys {
		out.field("Key Shown", k.Host+"  "+k.Fingerprint+"  (nobody has confirmed it)")
	}
	writeConditions(out, c.Status.Conditions)
}

func writeHost(out *sheet, h *minik8s.SSHHost) {
	port := h.Port
	if port == 0 {
		port = 22
	}
	out.field("Host", fmt.Sprintf("%s, port %d", h.Host, port))
	out.field("User", h.User)
	if h.Interactive {
		out.field("Interactive", "yes: `minik8sd ctl gpu login` opens the connection")
	}
	out.field("Login", or(h.LoginSecret, "<none>"))
	out.lines("Host Keys", h.HostKeys)
}
