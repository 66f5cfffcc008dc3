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
//   - JSONPath is RFC 9535's. Paths that only its forerunners know (a name with a dash after a dot) are accepted where they are plain.
//   - JSONata, and with it Assign, Arguments and Output, are refused: it is a second language with loops of its own, which
//     would run in the master without a bound on its time. So are distributed maps, which read their items from S3.
//   - A machine, with all those inside it, has at most 1,000 states, 10 deep.
//
// Its files:
//
//	machine.go    what a machine is made of
//	parse.go      reading, and the mistakes of single states
//	check.go      the mistakes of the whole: ways that lead nowhere
//	path.go       JSONPath, and where a result is put
//	template.go   Parameters, ResultSelector, ItemSelector
//	intrinsic.go  intrinsic functions
//	choice.go     the rules of a Choice
//	step.go       what a state does
//	value.go      JSON values
package asl
