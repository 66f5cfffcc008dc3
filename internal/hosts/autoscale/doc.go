// Command autoscale shows replicas that follow the load ("make demo-autoscale"). A web server on three machines (package
// hosts) is asked by a client on one of them through its Service, and each request costs it CPU time. The client asks more
// often, and the autoscaler adds replicas, on all machines, until each has about as much to do as is aimed at; then its requests
// cost nothing, and one replica is left while they go on. What was seen is drawn as an SVG picture.
//
//	main.go     the machines, by a scenario file
//	phases.go   how often the client asks for how much work, and what is waited for then
//	client.go   the client
//	observe.go  what is seen of autoscaler and pods, twice a second
//	record.go   all that was seen, and what is told of it at the end; pure
//	judge.go    whether that is what has to be; pure
//	picture.go  how it is drawn, with chart/; pure
//
// It ends with an error if replicas did not grow, ran on one machine only, or did not become as few again, if a replica that was
// ready got no request, or if any request failed. Nothing of it outlives it but the picture.
package main
