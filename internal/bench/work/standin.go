package work

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// standIn is what a test fixture wants of a test, for a program that is none.
type standIn struct {
	testing.TB // for its private method alone
	cleanups   []func()
}

// stopped is how a standIn leaves a fixture that failed.
type stopped struct{ why string }

func (s *standIn) Helper()                           {}
func (s *standIn) Failed() bool                      { return false }
func (s *standIn) Cleanup(f func())                  { s.cleanups = append(s.cleanups, f) }
func (s *standIn) Logf(string, ...any)               {}
func (s *standIn) Skip(args ...any)                  { panic(stopped{fmt.Sprint(args...)}) }
func (s *standIn) Fatal(args ...any)                 { panic(stopped{fmt.Sprint(args...)}) }
func (s *standIn) Skipf(format string, args ...any)  { s.Skip(fmt.Sprintf(format, args...)) }
func (s *standIn) Fatalf(format string, args ...any) { s.Skip(fmt.Sprintf(format, args...)) }
func (s *standIn) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

func (s *standIn) end() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
}
