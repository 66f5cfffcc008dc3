// Command autoscale shows replicas that follow the load ("make demo-autoscale"): a web server on three machines (package
// hosts) gets something to do, more of it run, on all machines, all of them answer, and when there is nothing to do any more
// one is left. It draws the course as an SVG picture.
//
//	main.go    the machines, and the phases
//	course.go  what is seen meanwhile: samples of the autoscaler and the pods, and the requests of a client
//	judge.go   whether that is what has to be; pure
//	chart/     the picture; pure
//
// It ends with an error if replicas did not follow, pods of one machine only answered, or a request failed.
package main
