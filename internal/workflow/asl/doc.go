// Package asl is the Amazon States Language: it reads and checks a state machine, and says what each of its states does with its
// input. It is pure: it calls nothing, waits for nothing and keeps nothing. Package workflow runs machines, package validation checks
// them, and ctl draws them.
//
// It promises: Parse names every mistake of a definition with its place, and what Parse accepts needs no further check. What states
// do follows the specification (https://states-language.net) and its JSONPath dialect: all eight types, InputPath, OutputPath, ResultPath,
// Parameters, ResultSelector, Retry, Catch, 39 comparison operators, 18 intrinsic functions and the context object ($$). The same
// state with the same input and context gives the same, also what is random: its seed is in the context.
//
// Where it differs from the service at AWS:
//
//   - Resource is a function's name, or the ARN of a Lambda function, of which the name counts.
//   - A Task may have Left and Right instead of Next: the states that follow if the function's check is true, and if it is not. RETURN is the
//     end. The names of the two branches are the second seed system's.
//   - States.Format writes objects and lists as JSON, where the service writes them as Java does.
//   - A path in Parameters that names nothing is States.ParameterPathFailure, as the specification says, where the service says States.Runtime.
//   - JSONPath is RFC 9535's. Paths that only its forerunners know (a name with a dash after a dot) are accepted where they are plain.
//   - JSONata, and with it Assign, Arguments and Output, are refused: it is a second language with loops of its own, which
//     would run in the master without a bound on its time. So are distributed maps, which read their items from S3.
//   - A filter in a path asks for single values, as in [?(@.price < 10)], and calls no function. A path has at most 1,024 characters.
//   - A machine, with all those inside it, has at most 1,000 states, 10 deep.
//
// What a state costs has bounds (budget.go), since machines run in the leading master, whoever has written them: a value may have 256 KiB, as
// at AWS, and what a state's functions make 4 MiB together (States.DataLimitExceeded); a state's paths and functions may look at two million values
// (States.Runtime). What is met of an object by * or .. comes in the order of its names.
//
// Its files:
//
//	machine.go    what a machine is made of
//	parse.go      reading, and the mistakes of all states
//	states.go     those of each type
//	handlers.go   Retry and Catch
//	check.go      the mistakes of the whole: ways that lead nowhere
//	path.go       reading JSONPath, and where a result is put
//	query.go      what a path finds
//	template.go   Parameters, ResultSelector, ItemSelector
//	intrinsic.go  reading and calling intrinsic functions
//	functions.go  what each of them does
//	budget.go     what a state may cost
//	choice.go     the rules of a Choice
//	step.go       what a state does
//	value.go      JSON values
package asl
