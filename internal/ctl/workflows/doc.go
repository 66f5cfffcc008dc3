// Package workflows is what ctl does with Workflows: it starts and cancels runs, follows them, and draws them.
//
// It promises nothing beyond what the API does. Only package ctl uses it; it keeps nothing.
package workflows
