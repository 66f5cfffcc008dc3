package minik8s

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GpuJob is a program for graphics cards that a Slurm cluster compiles and runs, and whose results come back.
type GpuJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GpuJobSpec   `json:"spec,omitempty"`
	Status GpuJobStatus `json:"status,omitempty"`
}

// GpuJobSpec is what people write. It cannot be changed, as with a batch Job: what runs elsewhere would not follow. Cleanup
// and Results can, as they are read at the end.
type GpuJobSpec struct {
	// Cluster is a SlurmCluster of the namespace. Empty: the one called default, or the only one.
	Cluster string `json:"cluster,omitempty"`
	// LoginSecret is a Secret of the namespace that is used instead of the cluster's own; see SSHHost.
	LoginSecret string `json:"loginSecret,omitempty"`
	// Username and Password are what a manifest may bring instead. They can be written and never read, as stringData of a
	// Secret: the API server moves both into a Secret of the job's own, LoginSecretOf, and stores an object without them.
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`

	// Sources are the program's files.
	Sources GpuJobSources `json:"sources,omitempty"`
	// WorkDir is the folder, below the job's own, into which the sources are put. Scripts run in the job's own folder.
	WorkDir string `json:"workDir,omitempty"`
	// Modules are loaded before compiling and running.
	Modules []string `json:"modules,omitempty"`
	// CompileScripts are lines of shell that make the program. The first that fails ends the job.
	CompileScripts []string `json:"compileScripts,omitempty"`
	// CompileOn is Login (the default): on the login node, before the job is submitted; or Job: as the job's first step.
	CompileOn string `json:"compileOn,omitempty"`
	// RunScripts are lines of shell that run it. The job's exit code is that of the first that fails, or 0.
	RunScripts []string `json:"runScripts,omitempty"`
	// Env are variables of compiling and running: a value, or a key of a ConfigMap or a Secret.
	Env []corev1.EnvVar `json:"env,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// OutputFile and ErrorFile get what the job prints. "%" is a letter like any other. Empty: NAME.out and NAME.err.
	OutputFile string `json:"outputFile,omitempty"`
	ErrorFile  string `json:"errorFile,omitempty"`
	// Results are files to bring back beside those two: paths below the job's folder, with * ? and [], folders as a whole.
	Results []string `json:"results,omitempty"`
	// ResultPath is where ctl puts the results on the machine of the person who applies the job.
	ResultPath string `json:"resultPath,omitempty"`
	// Cleanup says when the job's folder on the cluster goes: OnSuccess (the default) or Always, once the results are back;
	// Never: with the object. With OnSuccess it also stays while it has results that could not be read.
	Cleanup string `json:"cleanup,omitempty"`

	// What is asked of Slurm. Empty: the SlurmCluster's defaults, then Slurm's own.
	Partition    string             `json:"partition,omitempty"`
	Account      string             `json:"account,omitempty"`
	QOS          string             `json:"qos,omitempty"`
	Nodes        int32              `json:"nodes,omitempty"`
	TasksPerNode int32              `json:"tasksPerNode,omitempty"`
	CPUsPerTask  int32              `json:"cpusPerTask,omitempty"`
	GPUsPerNode  int32              `json:"gpusPerNode,omitempty"` // --gres=gpu:N
	GPUs         int32              `json:"gpus,omitempty"`        // --gpus=N, of the whole job
	GPUType      string             `json:"gpuType,omitempty"`
	Memory       *resource.Quantity `json:"memory,omitempty"` // of each node
	TimeLimit    *metav1.Duration   `json:"timeLimit,omitempty"`
	// Array makes one task per number, as in "0-9", "1,3,5" or "0-99%4"; SLURM_ARRAY_TASK_ID is the task's.
	Array string `json:"array,omitempty"`
	// Requeue says whether Slurm may start the job anew when a node fails. Unset: as the cluster does.
	Requeue *bool `json:"requeue,omitempty"`
	// DependsOn are jobs of the same namespace and cluster that come first.
	DependsOn []GpuJobDependency `json:"dependsOn,omitempty"`
	Mail      *GpuJobMail        `json:"mail,omitempty"`
	// Sbatch are further options of sbatch, one each, as in "--constraint=a100".
	Sbatch []string `json:"sbatch,omitempty"`
}

// GpuJobSources says where the files come from; all that are given are used.
type GpuJobSources struct {
	// Folder is a folder on the machine of the person who applies the job: ctl uploads it. The job waits for that.
	Folder string `json:"folder,omitempty"`
	// File is one file there.
	File string `json:"file,omitempty"`
	// ConfigMap is one of the namespace: a file for each of its keys.
	ConfigMap string `json:"configMap,omitempty"`
	// Files are in the manifest itself.
	Files []GpuJobFile `json:"files,omitempty"`
}

// GpuJobFile is a file in a manifest.
type GpuJobFile struct {
	// Path is below the folder of the sources.
	Path    string `json:"path"`
	Content string `json:"content,omitempty"`
}

// GpuJobDependency is a job that comes first.
type GpuJobDependency struct {
	Name string `json:"name"`
	// When is Slurm's word: afterok (the default), afterany, afternotok or after.
	When string `json:"when,omitempty"`
}

// GpuJobMail is whom Slurm writes to.
type GpuJobMail struct {
	// To is an address.
	To string `json:"to"`
	// Types are BEGIN, END, FAIL, REQUEUE, ALL, TIME_LIMIT_80 and the others of sbatch --mail-type.
	Types []string `json:"types,omitempty"`
}

// GpuJobStatus is what the GPU part writes.
type GpuJobStatus struct {
	// Cluster is the SlurmCluster that has the job.
	Cluster string `json:"cluster,omitempty"`
	// Folder is the job's own on the login node.
	Folder string `json:"folder,omitempty"`
	// State is Slurm's word (PENDING, RUNNING, COMPLETED, ...), or one of those before it: UPLOADING, COMPILING,
	// SUBMITTING. Empty: nothing was done yet.
	State string `json:"state,omitempty"`
	// Reason is Slurm's for a job that waits or ended, as in Resources.
	Reason string `json:"reason,omitempty"`
	// JobID is Slurm's number.
	JobID string `json:"jobID,omitempty"`
	// NodeList are Slurm's nodes, as it writes them: gpu[01-02].
	NodeList string `json:"nodeList,omitempty"`

	SubmitTime *metav1.Time `json:"submitTime,omitempty"`
	StartTime  *metav1.Time `json:"startTime,omitempty"`
	EndTime    *metav1.Time `json:"endTime,omitempty"`
	// ExitCode is the exit code of the batch script; of an array, the highest.
	ExitCode *int32 `json:"exitCode,omitempty"`
	// Signal is the signal that ended it.
	Signal *int32 `json:"signal,omitempty"`
	// Restarts counts how often Slurm has queued the job again.
	Restarts int32 `json:"restarts,omitempty"`
	// Script is how the job would be submitted and what it would run. It is in the answer to a dry run alone, and never stored.
	Script string `json:"script,omitempty"`
	// Tasks are those of an array.
	Tasks *GpuJobTasks `json:"tasks,omitempty"`
	// Results are the files that came back.
	Results *GpuJobResults `json:"results,omitempty"`
	// Conditions: SourcesReady, Compiled, Submitted, ResultsReady, and at the end Complete or Failed.
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// GpuJobTasks counts the tasks of an array.
type GpuJobTasks struct {
	Pending   int32 `json:"pending"`
	Running   int32 `json:"running"`
	Succeeded int32 `json:"succeeded"`
	Failed    int32 `json:"failed"`
}

// GpuJobResults are the files that came back.
type GpuJobResults struct {
	Files int32 `json:"files"`
	Bytes int64 `json:"bytes"`
	// Master is the machine that has them.
	Master string `json:"master"`
}

// GpuJobList is a list of GpuJob objects.
type GpuJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GpuJob `json:"items"`
}

// The choices of CompileOn and Cleanup.
const (
	CompileOnLogin = "Login"
	CompileOnJob   = "Job"

	CleanupOnSuccess = "OnSuccess"
	CleanupAlways    = "Always"
	CleanupNever     = "Never"
)

// The conditions of a GpuJob.
const (
	GpuJobSourcesReady = "SourcesReady"
	GpuJobCompiled     = "Compiled"
	GpuJobSubmitted    = "Submitted"
	GpuJobFollowed     = "Followed" // False, and only then there: the job cannot be followed at the moment
	GpuJobResultsReady = "ResultsReady"
	GpuJobComplete     = "Complete"
	GpuJobFailed       = "Failed"
)

// GpuJobFinalizer keeps a GpuJob that is deleted until its job is cancelled and its files are removed.
const GpuJobFinalizer = "minik8s.io/gpu-job"

// LoginSecretOf is the name of the Secret that keeps the username and password of a GpuJob's manifest.
func LoginSecretOf(job string) string { return "gpujob-" + job + "-login" }

// The parts of a GpuJob's path: what the GPU part answers.
const (
	GpuJobSourcesSubresource = "sources" // PUT a tar: the folder or file that the spec names
	GpuJobFilesSubresource   = "files"   // GET the list, or files/PATH: one file
	GpuJobLogSubresource     = "log"     // GET what the job prints
	GpuJobScriptSubresource  = "script"  // GET the batch script
)
