// Package functions is what ctl does with Functions: it makes them from files, calls them, and fetches results of calls.
//
// It reads files of this machine and asks the API, and keeps nothing. Package ctl has the commands.
package functions
