// Package review answers the kinds that are questions (api.Questions): who am I, may I, whose token is this. Package
// strategy names the answers in the rows of these kinds; package authorization has the rules they report.
//
// It promises: a question changes nothing and is not stored. It has no state.
package review
