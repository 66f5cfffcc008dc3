// Package plan says what a GpuJob is for Slurm, and what news of it means for its status. It is pure.
//
// News comes in two ways: marks, which the job leaves itself and which are quick, and what squeue and sacct say, which is
// true but late. A mark says that a job has ended well; that one has ended badly Slurm has to say, since only it knows of
// time limits, memory, cancellations and new tries.
package plan
