// Package workflow runs Workflows: state machines (package asl) whose tasks are Functions.
//
// The Controller runs on the leading master. A change of a Workflow that has params starts a WorkflowRun, and so may anybody who makes one. Each
// run has a goroutine, and each branch of a Parallel or Map state one more. Whenever a state has been left, the transition is
// committed by one write: the creation of a WorkflowStep, whose name is its place in the run. What the run does next follows from the
// definition that the run has begun with and from its steps alone.
//
// It promises: a transition is committed once. A master that is killed, or that leads no more, leaves a run where its last step is; the next one
// reads the steps and goes on from there. It repeats at most what was not committed: a Task's function may be called again, with the
// same id, which follows from the run and the step (the header X-Minik8s-Call has it). So functions run at least once, and transitions
// are committed exactly once. Each transition is an object of its own, so branches never conflict and no object grows with the run. A run that is
// cancelled or deleted starts nothing more; a function that has been called goes on, and its result is dropped.
//
// A run has bounds, and one that meets them fails there, whatever its states catch: at most maxSteps transitions (Workflow.StepLimit), which branches
// take from one count before they call anything, and 32 MiB that its steps keep in the store (Workflow.DataLimit). 1,000 of its branches are
// alive at a time, wherever they lie in each other; others wait. What one state may cost is package asl's to say; of all
// runs as many states are evaluated at a time as there are processors.
//
// A run has its definition, and its input if it was given none, from one generation of its workflow, the one that it has begun with.
//
// A Wait ends at a wall-clock time computed when its state was entered; a retry at the time stored in its step. A master that takes over keeps these
// times. A branch's first state counts as entered when the branch began: with the surrounding state or, if it had to wait for a place, when an
// earlier branch ended. If the next master's clock is another, these times end by that one. The limit of a Task begins anew with the next master.
// Heartbeats: functions send none, so HeartbeatSeconds is a limit like TimeoutSeconds, with an error of its own.
//
// A missing function is a warning and the condition Ready of the Workflow, and no refusal, since functions may come later; a run that meets
// it fails there with Function.NotFound, if no Retry and no Catch is for that. The names of errors are the function's own (the class of a Python
// exception), States.Timeout if the state's time is over, Function.Timeout if the function's is, and Function.NotFound, Function.BadRequest,
// Function.Failed and Function.Unavailable. A call for which the master has no room, or that finds the store without a
// leader, is made later, while the state has time.
//
// A run is one trace, whose id is its UID without the dashes: every call is a part of it, and the logs of the instances have it.
//
// A text goes to a function as JSON, or as it is if the state has Left and Right, whose functions take text. Such a state calls its
// function alone. Any other calls what the function's own left and right name, too.
//
// Only roles makes one. Who may do what is decided by the registry: whoever may create WorkflowRuns calls the functions of the
// namespace by them. Everything survives a kill -9 but the goroutines. While no run is under way nothing runs, and nothing ticks.
//
//	controller.go  Workflows, and which runs are under way
//	run.go         one run: its beginning and its end
//	history.go     what another master has to know of it
//	steps.go       its steps in the store, and how many there may be
//	machine.go     one machine: states and errors
//	branches.go    machines side by side
//	task.go        calls of functions
package workflow
