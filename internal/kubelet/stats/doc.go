// Package stats keeps what this node, its pods and their containers use, for as long as somebody asks. Its subpackages
// say it in the languages of those who ask:
//
//	summary       the kubelet's /stats/summary
//	cadvisor      cAdvisor's REST API
//	scrape        Prometheus' text format
//
// storage measures what files take, in its own time, and events knows which containers began, ended, or ran out of memory.
//
// It promises: nothing is read while nobody asks, and there is no goroutine and no timer but one that forgets. So the
// interval of the samples is that of the questions: a second while somebody looks on, a quarter of a minute for an
// autoscaler. Samples are never closer than a second: questions in between get the same one. A rate is the difference of
// two samples of counters, never an average since the start: who asks for rates first waits a second for the second
// sample. Ended containers are gone at the next sample. The machine's network is its interfaces without the links to pods, the
// default route's first.
//
// The server of the kubelet calls it. A history is at most 60 samples of each container, and 4 of a pod as a whole, kept as
// what is different from one to the next, and is in memory alone: it ends with the daemon, and 15 minutes after the last
// question. Its times are of the wall clock: a clock that is set back ends it.
package stats
