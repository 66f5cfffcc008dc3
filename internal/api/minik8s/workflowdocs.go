package minik8s

// SwaggerDoc returns the text for `kubectl explain`.
func (Workflow) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "Workflow is a state machine whose tasks are Functions.",
		"metadata": "Standard object's metadata. The name may have capitals and underscores.",
		"spec":     "The state machine, and what its runs may do. A run keeps the definition that it has begun with.",
		"status":   "Whether its functions exist, and which run its last change has started.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (WorkflowSpec) SwaggerDoc() map[string]string {
	return map[string]string{
		"":           "The state machine, and what its runs may do.",
		"definition": "The state machine, in the Amazon States Language with JSONPath: StartAt and States, whose types are Task, Choice, Parallel, Map, Wait, Pass, Succeed and Fail. A Task's Resource is a Function of the namespace.",
		"params":     "The input of the run that starts when the workflow is made or changed. Without it none does.",
		"maxSteps":   "How many transitions a run may have, all its branches together. 1000 by default.",
		"runSeconds": "How long a run is kept after its end, with its steps. 3600 by default.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (WorkflowStatus) SwaggerDoc() map[string]string {
	return map[string]string{
		"":                   "Whether a workflow's functions exist, and which run its last change has started.",
		"observedGeneration": "The generation of which the rest is said, and whose run has been started.",
		"lastRun":            "The run that was started by the last change.",
		"conditions":         "Ready: whether all functions exist that it names.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (WorkflowRun) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "WorkflowRun is one run of a Workflow. Each of its transitions is a WorkflowStep.",
		"metadata": "Standard object's metadata.",
		"spec":     "What is run with what. Only cancel can be changed, to true.",
		"status":   "How far it is, and its result.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (WorkflowRunSpec) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "What is run with what.",
		"workflow": "A Workflow of the namespace.",
		"input":    "What its first state gets: any JSON.",
		"cancel":   "true ends the run. A function that has been called goes on; its result is dropped.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (WorkflowRunStatus) SwaggerDoc() map[string]string {
	return map[string]string{
		"":           "How far a run is. While it runs, its last WorkflowStep says where.",
		"state":      "Empty before it has begun, then Running, Succeeded, Failed, TimedOut or Cancelled.",
		"definition": "The workflow's definition when the run began.",
		"maxSteps":   "The workflow's maxSteps when the run began.",
		"runSeconds": "The workflow's runSeconds when the run began.",
		"startTime":  "When it began.",
		"endTime":    "When it ended.",
		"input":      "The workflow's params when the run began, if the run has no input of its own.",
		"steps":      "How many transitions it had, when it has ended.",
		"output":     "The result.",
		"error":      "The name of the error that ended it.",
		"cause":      "What is known of that error, such as a traceback.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (WorkflowStep) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "WorkflowStep is a transition of a run: a state has been left. It is written once and never changed, and goes with its run.",
		"metadata": "Standard object's metadata.",
		"spec":     "What happened.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (WorkflowStepSpec) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "What happened in a run.",
		"run":      "The WorkflowRun.",
		"branch":   "Empty for the run itself. The branch I of a Parallel or Map state whose step is N has the name N-I, below that of the branch in which the state is.",
		"number":   "The place among the steps of its branch, from 0.",
		"state":    "The state that has been left, or is to be tried again.",
		"type":     "The type of that state.",
		"event":    "Succeeded, Retried, Caught or Failed.",
		"next":     "The state that follows. None: the branch has ended.",
		"output":   "What the next state gets, or the branch's result.",
		"error":    "The name of the error.",
		"cause":    "What is known of the error, such as a traceback.",
		"retrier":  "The entry of Retry by which the state is tried again.",
		"until":    "When it is tried again.",
		"instance": "The pod that gave a Task its result.",
		"cold":     "Whether an instance was started for it.",
		"entered":  "When the state was entered.",
		"time":     "When it was left.",
	}
}
