// Package batch makes what a job is for Slurm: its scripts, the options of sbatch, and reads what squeue and sacct say.
//
// It promises: it is pure. Whatever is in a Job, the scripts and options do what the Job says and nothing else: values are
// quoted, and what cannot be quoted is refused. Lines of shell that a Job has are taken as they are, in a file of their own,
// so that no line of theirs ends or changes what is around it.
//
// Options go to sbatch as arguments. The batch script has no #SBATCH line, and a command before every other line, below
// which Slurm looks for none.
//
// Packages slurm and gpu use it.
package batch
