package minik8s

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Function is a program that runs while it is called: its instances are pods that come with the first call and go when nobody
// calls any more.
type Function struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FunctionSpec   `json:"spec,omitempty"`
	Status FunctionStatus `json:"status,omitempty"`
}

// FunctionSpec is what people write: a Python file, or an image that answers HTTP. A change takes effect for the next call.
type FunctionSpec struct {
	// Source is the Python file. It defines main(params), which takes and returns JSON, or run(arg), which takes and returns
	// text, and with it, or not, check(arg); see Left.
	Source string `json:"source,omitempty"`
	// Files are further files beside it, as modules that it imports.
	Files []FunctionFile `json:"files,omitempty"`
	// PreRun is a shell script that each instance runs once, before it takes calls.
	PreRun string `json:"preRun,omitempty"`
	// Image is, instead of Source, an image that answers HTTP on Port.
	Image string `json:"image,omitempty"`
	Port  int32  `json:"port,omitempty"`

	// Env are variables of the instances: a value, or a key of a ConfigMap or a Secret.
	Env []corev1.EnvVar `json:"env,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Resources are those of an instance.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// Version is v2 (the default): an instance has the file loaded and serves many calls; or v1: each call has a process of its
	// own, in which nothing has run before.
	Version string `json:"version,omitempty"`
	// TimeoutSeconds is how long a call may take, its wait for an instance included.
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// Concurrency is how many calls one instance has at a time, at most.
	Concurrency int32 `json:"concurrency,omitempty"`
	// TargetConcurrency is how many it is to have on average. There are as many instances as that asks for.
	TargetConcurrency int32 `json:"targetConcurrency,omitempty"`
	// MinInstances are there even when nobody calls; MaxInstances are never exceeded; InitialInstances come with the function.
	MinInstances     int32 `json:"minInstances,omitempty"`
	MaxInstances     int32 `json:"maxInstances,omitempty"`
	InitialInstances int32 `json:"initialInstances,omitempty"`
	// IdleSeconds is how long nobody has called when the instances begin to go.
	IdleSeconds int32 `json:"idleSeconds,omitempty"`
	// ResultSeconds is how long the result of a call is kept for who asks for it later.
	ResultSeconds int32 `json:"resultSeconds,omitempty"`
	// Retry is WhenUnsent (the default): a call goes to another instance if nothing of it was sent to the first; or Never.
	Retry string `json:"retry,omitempty"`

	// Address is that of a Service of the function's own, by which it is called from the cluster's pods and nodes: an address, or
	// Auto, which is one of the range of Services. Empty: there is none.
	Address string `json:"address,omitempty"`

	// Triggers are what calls the function beside people: times, and changes of objects. Such a call is a FunctionCall.
	Triggers []FunctionTrigger `json:"triggers,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// Left and Right are the functions that come next, with what this one returned, if check(arg) is true, and if it is not.
	// RETURN, or nothing: none comes, and the result is the caller's.
	Left  string `json:"left,omitempty"`
	Right string `json:"right,omitempty"`
}

// FunctionTrigger is an event that calls the function: a schedule, or changes of objects.
type FunctionTrigger struct {
	Name string `json:"name"`
	// Schedule is when it is called, as in a crontab; TimeZone says whose clock, UTC by default; Body is the argument.
	Schedule string `json:"schedule,omitempty"`
	TimeZone string `json:"timeZone,omitempty"`
	Body     string `json:"body,omitempty"`
	// Object says which objects' changes call it, with a FunctionEvent.
	Object *FunctionObjectTrigger `json:"object,omitempty"`
}

// FunctionObjectTrigger selects changes of objects.
type FunctionObjectTrigger struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// AllNamespaces: not only objects of the function's namespace.
	AllNamespaces bool                  `json:"allNamespaces,omitempty"`
	Selector      *metav1.LabelSelector `json:"selector,omitempty"`
	// On are the changes that count; none: all.
	On []string `json:"on,omitempty"`
}

// Changes of objects. An object that the selector selects no more is Deleted to it.
const (
	ObjectCreated = "Created"
	ObjectUpdated = "Updated"
	ObjectDeleted = "Deleted"
)

// FunctionEvent is the argument of a call for a change of an object, as JSON.
type FunctionEvent struct {
	Trigger string `json:"trigger"`
	Type    string `json:"type"`
	// Object is the object after the change, or as it was last. Of a Secret, and of what is too large for a call, it is kind and metadata.
	Object any `json:"object"`
}

// FunctionTriggerStatus is how far a trigger has come.
type FunctionTriggerStatus struct {
	Name string `json:"name"`
	// LastTime is the last time of the schedule for which there is a call; of a trigger for objects, about when Revision was the newest of the store.
	LastTime *metav1.Time `json:"lastTime,omitempty"`
	// Revision is that up to which changes of objects have their calls.
	Revision string `json:"revision,omitempty"`
}

// FunctionFile is a file of a function.
type FunctionFile struct {
	// Path is below the folder of the source.
	Path string `json:"path"`
	// Content is text; Data any bytes, in base64. One of them is given.
	Content string `json:"content,omitempty"`
	Data    []byte `json:"data,omitempty"`
}

// FunctionStatus is what the function controller writes.
type FunctionStatus struct {
	// ObservedGeneration is the generation of which the rest is said.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Image is what instances run, by its digest.
	Image string `json:"image,omitempty"`
	// Platform is a hash of the base image and the launcher that Image was built from. A master with the same one need not build the image
	// to know its digest.
	Platform string `json:"platform,omitempty"`
	// Instances are those that exist; ReadyInstances those that take calls.
	Instances      int32 `json:"instances,omitempty"`
	ReadyInstances int32 `json:"readyInstances,omitempty"`
	// Address is that of its Service, if it has one.
	Address string `json:"address,omitempty"`
	// LastCallTime is about when it was last called: it is written when the number of instances changes.
	LastCallTime *metav1.Time `json:"lastCallTime,omitempty"`
	// Triggers say how far each trigger has come.
	Triggers   []FunctionTriggerStatus `json:"triggers,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	Conditions []metav1.Condition      `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// FunctionReady is the condition of a function that can be called; FunctionAddressed of one that has its address; FunctionTriggersHeldBack of one for
// which objects change faster than triggers call.
const (
	FunctionReady            = "Ready"
	FunctionAddressed        = "Addressed"
	FunctionTriggersHeldBack = "TriggersHeldBack"
)

// Words of a FunctionSpec.
const (
	FunctionV1 = "v1"
	FunctionV2 = "v2"
	// RetryWhenUnsent and RetryNever are values of Retry.
	RetryWhenUnsent = "WhenUnsent"
	RetryNever      = "Never"
	// AddressAuto is a value of Address: any that is free.
	AddressAuto = "Auto"
	// FunctionReturn is the end of a chain, as a value of Left and Right.
	FunctionReturn = "RETURN"
)

// FunctionCallSubresource is the path below a Function by which it is called: POST, with the argument as the body.
const FunctionCallSubresource = "call"

// FunctionLoadSubresource is the path below a Function that says what the leading master knows of its calls: GET.
const FunctionLoadSubresource = "load"

// FunctionLoad is what it answers, as JSON. The counts are since this master leads.
type FunctionLoad struct {
	Calls      int64 `json:"calls"`
	Errors     int64 `json:"errors"`
	ColdStarts int64 `json:"coldStarts"`
	// P50Millis and P99Millis are how long the last calls took, their wait for an instance included.
	P50Millis float64 `json:"p50Millis"`
	P99Millis float64 `json:"p99Millis"`
	// UnderWay are calls that run or wait; Waiting those that wait for an instance with room.
	UnderWay         int32 `json:"underWay"`
	Waiting          int32 `json:"waiting"`
	Instances        int32 `json:"instances"`
	ReadyInstances   int32 `json:"readyInstances"`
	DesiredInstances int32 `json:"desiredInstances"`
	Target           int32 `json:"target"`
	Panicking        bool  `json:"panicking"`
}

// FunctionCallsSubresource is the path below a Function that says how its last calls went that somebody has waited for: GET. The answer is a
// list of FunctionRecords as JSON, the newest first. They are in the memory of the master that leads.
const FunctionCallsSubresource = "calls"

// FunctionRecord is how a call went that somebody has waited for.
type FunctionRecord struct {
	ID     string      `json:"id"`
	Caller string      `json:"caller"`
	Time   metav1.Time `json:"time"`
	// TookMillis is how long it took, QueuedMillis how much of that it has waited for an instance; Cold, that it waited for one to start.
	TookMillis   float64 `json:"tookMillis"`
	QueuedMillis float64 `json:"queuedMillis"`
	Cold         bool    `json:"cold,omitempty"`
	// Status is HTTP's. Fault says of a failed call whose fault it was, and Result what it said, such as a traceback.
	Status   int    `json:"status"`
	Fault    string `json:"fault,omitempty"`
	Result   string `json:"result,omitempty"`
	Instance string `json:"instance,omitempty"`
	Trace    string `json:"trace,omitempty"`
	Steps    int32  `json:"steps,omitempty"`
	// Cut: the result was too long to be kept.
	Cut bool `json:"cut,omitempty"`
}

// FunctionResultSubresource is the path below a FunctionCall that has its result as it came: GET.
const FunctionResultSubresource = "result"

// FunctionLabel is on the pods of a function, and has its derived name.
const FunctionLabel = "minik8s.io/function"

// FunctionPort is the port of instances of Python functions; FunctionServicePort that of a function's Service.
const (
	FunctionPort        = 8080
	FunctionServicePort = 80
)

// FunctionList is a list of Functions.
type FunctionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Function `json:"items"`
}

// FunctionCall is a call whose caller does not wait. It exists before the caller has its name, so it is not lost; it runs once
// or, if a master is lost meanwhile, more often. It goes some time after its end; see ResultSeconds.
type FunctionCall struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FunctionCallSpec   `json:"spec,omitempty"`
	Status FunctionCallStatus `json:"status,omitempty"`
}

// FunctionCallSpec is what is called with what. It cannot be changed.
type FunctionCallSpec struct {
	// Function is one of the namespace.
	Function string `json:"function"`
	// Body is the argument.
	Body []byte `json:"body,omitempty"`
	// ContentType is the argument's.
	ContentType string `json:"contentType,omitempty"`
	// Caller is who called.
	Caller string `json:"caller,omitempty"`
	// TraceParent is the trace that the call is part of, as the W3C writes it.
	TraceParent string `json:"traceParent,omitempty"`
}

// FunctionCallStatus is how it went.
type FunctionCallStatus struct {
	// State is empty before the call has begun, then Running, Succeeded or Failed.
	State string `json:"state,omitempty"`
	// Fault says of a failed call whose fault it was: function, caller or platform.
	Fault     string       `json:"fault,omitempty"`
	StartTime *metav1.Time `json:"startTime,omitempty"`
	EndTime   *metav1.Time `json:"endTime,omitempty"`
	// Master is the one that has the call under way; empty before it begins, and at its end.
	Master string `json:"master,omitempty"`
	// Function is the one that gave the result: the last of a chain.
	Function string `json:"function,omitempty"`
	// Instance is the pod that gave the result.
	Instance string `json:"instance,omitempty"`
	// Queued is how long the call has waited for an instance; Cold, that it waited for one to start.
	Queued *metav1.Duration `json:"queued,omitempty"`
	Cold   bool             `json:"cold,omitempty"`
	// Trace is the id of the call's trace, as in the instances' logs.
	Trace string `json:"trace,omitempty"`
	// Steps is how many functions ran: more than 1 in a chain.
	Steps int32 `json:"steps,omitempty"`
	// Result is what came back, or the text of the error, such as a traceback.
	Result      []byte `json:"result,omitempty"`
	ContentType string `json:"contentType,omitempty"`
}

// States of a call, and whose fault a failure was.
const (
	CallRunning   = "Running"
	CallSucceeded = "Succeeded"
	CallFailed    = "Failed"

	FaultFunction = "function"
	FaultCaller   = "caller"
	FaultPlatform = "platform"
)

// Ended reports whether there is a result.
func (s *FunctionCallStatus) Ended() bool { return s.State == CallSucceeded || s.State == CallFailed }

// FunctionCallList is a list of FunctionCalls.
type FunctionCallList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FunctionCall `json:"items"`
}
