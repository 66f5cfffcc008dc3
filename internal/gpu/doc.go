// Package gpu runs GpuJobs on Slurm clusters, and answers for what is there: sources, files, logs, scripts.
//
// It has two halves, which share the connections (Links), and a broom:
//
//   - The Controller runs on the leading master. It puts a job on its cluster, follows it, brings its files back, and clears
//     up. Whatever it does may be done again: package slurm sees to it that nothing runs twice. It keeps no state but what
//     is in a job's status, on the cluster and in the store of results, so it may be killed at any moment.
//   - The Server runs on every master and answers the subresources of a GpuJob, and the login of a SlurmCluster. The API server has
//     authorised each request. Only the leading master has connections: the others have it answer.
//   - The Sweeper runs on every master, since every one may have led and have results: it removes from the store of its own
//     machine what belongs to a job that is gone, at its start and when it sees one go, and what it had begun to fetch when another
//     master has fetched it all. It follows the GpuJobs rather than be asked by the leader, who cannot ask a master that is down.
//     It never touches files of a job that exists, but for those, nor any that are just coming.
//
// Results go to the disk that etcd has, too. So before anything is fetched the bytes still to come are compared with what is free
// less a reserve, and if they do not fit the job waits (DiskFull) with its folder on the cluster as it is. What cannot be read there
// is left out, named in the condition ResultsReady, and keeps the folder; the rest comes. An attempt that breaks is made again, and
// asks for no byte and no checksum twice that it has, as long as the Controller runs; after that the bytes are still here.
//
// A SlurmCluster has one connection, whatever the number of its jobs, and a Follower while it has jobs: it reads the marks
// that they leave once a second, over the connection, and asks Slurm's controller once in pollSeconds for all together.
// Without jobs there is no connection and nothing ticks.
//
// Each cluster has a share of the Controller's workers and of the transfers, so that one that hangs holds nobody else up. Jobs that
// wait for each other in a circle say so.
//
// A job's log is read at the subresource log: by ctl logs, or by "kubectl get --raw", which prints a log as it grows. "kubectl logs"
// asks for logs of Pods alone, and of other kinds by the Pods that their selectors find; a job has none. It could have one, as
// virtual-kubelet makes them: a Pod for each job, on a Node for each cluster, with a kubelet that the Server plays. That is not done.
// A Node is a machine to all other parts: it gets a range of addresses and a route, the proxies and load balancers count it among
// those that traffic may enter by, DaemonSets want a Pod there, Prometheus and metrics.k8s.io ask its kubelet, the lifecycle
// of Nodes counts it when it judges whether most are lost. Each would need to know of machines that are none. And the Pod would say
// twice what the GpuJob says, with words that do not fit: a requeued job runs again in the same Pod, which no Pod does, an
// array has many exit codes, and deleting the one would have to mean deleting the other.
//
// A password or key goes from its Secret to the login node and nowhere else: not into a status, log, event or error.
//
//	links.go      the connections, one for each cluster and login
//	controller.go the loop, and the steps of a job; turns.go shares the workers among the clusters
//	follower.go   marks and queues
//	collect.go    results: when they are fetched, and what the status says; transfer.go fetches
//	sweeper.go    results that nobody has any more
//	report.go     a cluster's condition
//	server.go     the subresources; logs.go, upload.go, login.go; forward.go has another master answer
//	plan/         what a job is for Slurm, and what news mean for its status; pure
//	results/      files that came back
package gpu
