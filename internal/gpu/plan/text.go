package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/slurm/batch"
)

// Layout is where a job lies, as its status says; false if it was never put anywhere.
func Layout(obj *minik8s.GpuJob) (batch.Layout, bool) {
	l := batch.Layout{Name: obj.Name, UID: string(obj.UID)}
	base, ok := strings.CutSuffix(obj.Status.Folder, l.Folder()) // of an empty base
	l.Base = base
	return l, ok && base != ""
}

// DefaultFolder is where clusters' folders are for jobs, below the user's home.
const DefaultFolder = ".minik8s"

// Text is what a job is on its cluster, for people: the scripts, and how it is submitted. Variables whose values are elsewhere are
// only named. The error says what cannot be submitted.
func Text(j *minik8s.GpuJob, cluster *minik8s.SlurmClusterSpec) (string, error) {
	layout, ok := Layout(j)
	if !ok {
		folder := cluster.Folder
		if folder == "" {
			folder = DefaultFolder
		}
		layout.Base = path.Join(folder, "...")
	}
	var env []batch.Var
	for _, v := range j.Spec.Env {
		value := v.Value
		switch from := v.ValueFrom; {
		case from == nil:
		case from.SecretKeyRef != nil:
			value = fmt.Sprintf("(key %s of Secret %s)", from.SecretKeyRef.Key, from.SecretKeyRef.Name)
		case from.ConfigMapKeyRef != nil:
			value = fmt.Sprintf("(key %s of ConfigMap %s)", from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Name)
		}
		env = append(env, batch.Var{Name: v.Name, Value: value})
	}
	return Job(j, cluster, Given{Layout: layout, Env: env}).Text()
}

// Choose finds the cluster of a job among those of its namespace. The error says what to do.
func Choose(j *minik8s.GpuJob, names []string) (string, error) {
	switch {
	case j.Status.Cluster != "":
		return j.Status.Cluster, nil
	case j.Spec.Cluster != "":
		return j.Spec.Cluster, nil
	case slices.Contains(names, "default"):
		return "default", nil
	case len(names) > 1:
		return "", fmt.Errorf("namespace %s has several SlurmClusters and none is called default: name one in spec.cluster", j.Namespace)
	case len(names) == 0:
		return "", fmt.Errorf("namespace %s has no SlurmCluster: make one that says where to log in", j.Namespace)
	}
	return names[0], nil
}
