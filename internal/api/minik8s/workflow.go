package minik8s

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Workflow is a state machine whose tasks are Functions.
type Workflow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WorkflowSpec   `json:"spec,omitempty"`
	Status WorkflowStatus `json:"status,omitempty"`
}

// WorkflowSpec is what people write. A run keeps the definition that it has begun with.
type WorkflowSpec struct {
	// Definition is the state machine, in the Amazon States Language.
	Definition JSON `json:"definition,omitzero" patchStrategy:"replace"`
	// Params are the input of the run that starts when the workflow is made or changed. Without them none does.
	Params JSON `json:"params,omitzero" patchStrategy:"replace"`
	// MaxSteps is how many transitions a run may have: one that never ends is stopped there.
	MaxSteps int64 `json:"maxSteps,omitempty"`
	// RunSeconds is how long a run is kept after its end.
	RunSeconds int64 `json:"runSeconds,omitempty"`
}

// WorkflowStatus is what the workflow controller writes.
type WorkflowStatus struct {
	// ObservedGeneration is the generation of which the rest is said, and whose run has been started.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// LastRun is the run that was started by the last change.
	LastRun    string             `json:"lastRun,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// WorkflowReady is the condition of a workflow whose functions all exist.
const WorkflowReady = "Ready"

// WorkflowList is a list of Workflows.
type WorkflowList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Workflow `json:"items"`
}

// WorkflowRun is one run of a Workflow. Its transitions are WorkflowSteps.
type WorkflowRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WorkflowRunSpec   `json:"spec,omitempty"`
	Status WorkflowRunStatus `json:"status,omitempty"`
}

// WorkflowRunSpec is what is run with what. Only Cancel can be changed, to true.
type WorkflowRunSpec struct {
	// Workflow is one of the namespace.
	Workflow string `json:"workflow"`
	// Input is what its first state gets. Without it these are the params that the workflow has when the run begins.
	Input JSON `json:"input,omitzero"`
	// Cancel ends the run.
	Cancel bool `json:"cancel,omitempty"`
}

// WorkflowRunStatus is how far it is. While it runs, its last WorkflowStep says where.
type WorkflowRunStatus struct {
	// State is empty before it has begun, then Running, Succeeded, Failed, TimedOut or Cancelled.
	State string `json:"state,omitempty"`
	// Definition, MaxSteps and RunSeconds are those of the workflow when the run began.
	Definition JSON  `json:"definition,omitzero"`
	MaxSteps   int64 `json:"maxSteps,omitempty"`
	RunSeconds int64 `json:"runSeconds,omitempty"`
	// Input is the workflow's params, of the same generation as the definition, if the run has no input of its own.
	Input JSON `json:"input,omitzero"`

	StartTime *metav1.MicroTime `json:"startTime,omitempty"`
	EndTime   *metav1.MicroTime `json:"endTime,omitempty"`
	// Steps is how many transitions it had, when it has ended.
	Steps int64 `json:"steps,omitempty"`
	// Output is the result; Error and Cause say why there is none.
	Output JSON   `json:"output,omitzero"`
	Error  string `json:"error,omitempty"`
	Cause  string `json:"cause,omitempty"`
}

// States of a run.
const (
	RunRunning   = "Running"
	RunSucceeded = "Succeeded"
	RunFailed    = "Failed"
	RunTimedOut  = "TimedOut"
	RunCancelled = "Cancelled"
)

// Ended reports whether it will not change any more.
func (s *WorkflowRunStatus) Ended() bool { return s.State != "" && s.State != RunRunning }

// FirstInput is what the first state gets.
func (r *WorkflowRun) FirstInput() JSON {
	if r.Spec.Input.IsZero() {
		return r.Status.Input
	}
	return r.Spec.Input
}

// WorkflowRunList is a list of WorkflowRuns.
type WorkflowRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []WorkflowRun `json:"items"`
}

// WorkflowStep is a transition of a run: a state has been left. It is written once and never changed; that it exists is what commits
// the transition. It goes with its run.
type WorkflowStep struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WorkflowStepSpec `json:"spec,omitempty"`
}

// WorkflowStepSpec is what happened.
type WorkflowStepSpec struct {
	// Run is the WorkflowRun.
	Run string `json:"run"`
	// Branch is empty for the run itself. The branch I of a Parallel or Map state whose step is N has the name N-I, below that of the
	// branch in which the state is.
	Branch string `json:"branch,omitempty"`
	// Number counts the steps of a branch, from 0.
	Number int64 `json:"number"`
	// State is the one that has been left, or is to be tried again, and Type its type.
	State string `json:"state"`
	Type  string `json:"type"`
	// Event is Succeeded, Retried, Caught or Failed.
	Event string `json:"event"`
	// Next is the state that follows; none: the branch has ended.
	Next string `json:"next,omitempty"`
	// Output is what the next state gets, or the branch's result.
	Output JSON `json:"output,omitzero"`
	// Error and Cause say why it has not succeeded.
	Error string `json:"error,omitempty"`
	Cause string `json:"cause,omitempty"`
	// Retrier is the entry of Retry by which the state is tried again, at Until.
	Retrier int32             `json:"retrier,omitempty"`
	Until   *metav1.MicroTime `json:"until,omitempty"`
	// Instance is the pod that gave a Task its result; Cold, that it was started for it.
	Instance string `json:"instance,omitempty"`
	Cold     bool   `json:"cold,omitempty"`
	// Time is when it was left, and Entered when it was entered.
	Entered metav1.MicroTime `json:"entered"`
	Time    metav1.MicroTime `json:"time"`
}

// Bounds of Error and Cause, of steps and runs, in bytes: a function says what is in them.
const (
	MaxErrorName  = 256
	MaxErrorCause = 32 << 10
)

// Events of a step.
const (
	StepSucceeded = "Succeeded"
	StepRetried   = "Retried"
	StepCaught    = "Caught"
	StepFailed    = "Failed"
)

// WorkflowStepList is a list of WorkflowSteps.
type WorkflowStepList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []WorkflowStep `json:"items"`
}
