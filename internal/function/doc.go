// Package function runs Functions: it makes their images, keeps as many instances as the calls ask for, down to none, and brings each
// call to an instance.
//
//   - The Controller runs on the leading master. For each Function it has an image made and, from its first call on, a ReplicaSet
//     with pods of it. A changed Function gets another image and another ReplicaSet: new calls go there, and the old one goes when its
//     last call has ended.
//   - Triggers, beside it, make FunctionCalls when it is time (Spec.Triggers, as in a crontab) and when objects change. A timer is set and a
//     watch is open only for functions that ask for it. After each call
//     the trigger's position (time or revision) is written into the function's status; a quiet trigger writes it every two minutes. A
//     call has the name of its event (function, trigger, and position), and is kept for ten minutes at least: an event that is met again, as
//     after a kill -9, makes no second call. Only an event that is too large for a call is passed over, with a warning in the log. Names of such calls begin with plan.TriggerPrefix, and no
//     caller's id does. Of times that were missed the last one is made up for; changes whose history is gone are found by the objects'
//     revisions, but for what was deleted meanwhile. A trigger by objects has a pace, and the function says when it is held back. Whoever writes a trigger, or changes the program that gets its events, must be allowed to
//     list and watch the objects; of a Secret a call has the metadata alone, since calls are read by more people than Secrets are.
//   - The Dispatcher, on the same master, has all calls: each waits for an instance with room, in the order of arrival, and is sent
//     to the pod itself. It counts what is under way, and package plan says how many instances that asks for. A call that finds none
//     has one started at once. When there are to be fewer, those go that have no call.
//   - The Server runs on every master and answers whoever calls: by the API (functions/NAME/call), by the port for calls, and for
//     the results of calls that nobody has waited for. Masters that do not lead pass calls on to the one that does,
//     and try again until a call's time is over while nothing of it has begun. A function may have as much as is still free of what all may have under
//     way and in the store.
//   - The Door, on every master, answers for functions that have an address of their own, which is a Service's. Its EndpointSlice names the
//     masters, and never instances: so a call waits for an instance when there is none, is counted, and each instance keeps to its
//     limit, whichever way calls come, and nothing has to change in the kernels of the nodes when instances come and go. The cost:
//     each call takes an extra hop through a master. A function without an address has no Service, and costs the nodes nothing. The Door's port is open while a function has an
//     address, and for pods and nodes of the cluster alone; who is called is said by the Host of the request.
//   - Images, on every master, makes images and pushes them to the cluster's registry there. An image is the same bytes wherever it is
//     made, so a master that is asked for one that another has made makes it again, and not before. An image goes when no Function, ReplicaSet or
//     instance has it, from the leading master; other masters look when they lead. They may lie in another registry instead (elsewhere.go), of
//     which little is asked: to push, to look whether an image is there, and to remove one by its digest. It is never asked for a list, so that
//     nothing is removed there but what this cluster's objects have named; an image stays whose leading master is killed before it has removed it. A registry that does not answer is
//     tried again after a while, and disturbs no function whose image it has. An image that a node cannot pull there is pushed again.
//
// It promises: a call is answered once, with its result or with whose fault it was that there is none (function, caller, platform). A call that
// fits its time is not dropped because no instance runs. It is sent to another instance only if nothing of it was sent before. A call
// for which nobody waits is a FunctionCall: it is in the store before its caller has its name, by one write that begins it and names the master that has it. After the loss of that
// master it is called again, so that it runs at least once; with retry Never it fails instead, so that it runs at most once. A master that has ceased to lead and is alive finishes what it has
// begun: the one that leads asks it, and takes it for lost only if it does not answer. A caller may give it its id (the parameter id): saying one id twice makes one call. Other calls leave nothing in the store, and end with
// the master; the last ones are remembered in its memory, within a bound, with their results.
//
// Every call is part of a trace: its caller's, or a new one. Its id goes to the instance, into the instance's log, to the caller and into
// the FunctionCall. The leading master counts calls, and says it as metrics under Knative's names and as functions/NAME/load, for
// ctl func top; the counts begin anew when another master leads. A function that is never called has no metrics.
//
// The API server has authorised every call that comes through it. State is in Functions, FunctionCalls and ReplicaSets; what else
// there is (who waits, averages of the load) begins anew after a kill -9, with the instances that there are.
//
//	controller.go  images and ReplicaSets; status
//	images.go      the images
//	elsewhere.go   another registry for them than the cluster's own
//	triggers.go    calls by schedule
//	changes.go     calls by changes of objects
//	address.go     functions' own addresses: Services
//	door.go        who calls at such an address
//	pool.go        instances of one function, and who waits for them
//	dispatcher.go  calls, and how many instances they ask for
//	call.go        one call, and chains of them
//	later.go       calls for which nobody waits
//	inherit.go     those that another master has begun
//	stored.go      how much of them is in the store
//	server.go      who calls: to the master that leads, and his answer
//	manner.go      how he wants to be answered
//	body.go        what he sends
//	budget.go      what all functions may have together
//	forward.go     calls that go to another master
//	port.go        the port for calls
//	quiet.go       connections on which nothing is said
//	results.go     answers, and results that are asked for later
//	records.go     the last calls
//	invoke.go      calls of other parts of the master
//	stats.go       what is counted of calls: metrics, functions/NAME/load and functions/NAME/calls
//	traces.go      the traces of calls (W3C Trace Context)
//	plan/ image/ instance/ post/    names and numbers; files; the program in an instance; requests to it
package function
