// Package history checks what a cluster promises its clients, while its masters are killed, stopped, cut off and lose
// packets: several clients create, change, delete, read and watch a few ConfigMaps through the API of several masters,
// and everything that was asked and answered is recorded and then judged.
//
// What is promised, and checked:
//
//   - Each object by itself is linearizable: there is an order of all requests that agrees with their answers and with the
//     times at which they were made and answered, whichever masters were asked. Porcupine looks for it (model.go).
//   - Revisions follow time over all objects: a write that was acknowledged before another was asked for has the smaller one.
//   - A list is the state at its revision.
//   - What was acknowledged is there at the end, or was overwritten.
//   - What was refused was not carried out, and nothing is carried out twice.
//   - A watch is in order; it shows nothing twice; it shows all there is between its start and its end, also where it resumes
//     after another one, with the objects that the writes were acknowledged with; a bookmark is not ahead of what follows.
//
// A request has one of three outcomes. It succeeded; or it was refused, which changed nothing; or that is unknown, because
// the answer was lost: then it may be carried out at any later time, or never. The watches, put together, tell which
// (log.go): each write has a value of its own. Where they do not, it stays open in the model.
//
//	record.go    what is recorded
//	client.go    requests, and what their answers mean
//	workload.go  what the clients do
//	watch.go     what the watchers do
//	log.go       the changes that all watches together have seen
//	model.go     one object, as porcupine wants it
//	settle.go    what each request came to
//	check.go     the judgement
//	report.go    what a person gets of a failure
//	faults.go    faults by chance
//	team.go      who uses the masters in a round
//	run.go       all together, in rounds
//	faults/      "make faults"
//
// A run goes in rounds, with new objects in each, so that what has to be searched stays small. Its faults follow from its
// seed, though not their exact moments. The tests of package hosts and "make faults" call it; it needs a Lab.
package history
