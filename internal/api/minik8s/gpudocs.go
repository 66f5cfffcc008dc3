package minik8s

// SwaggerDoc returns the text for `kubectl explain`.
func (GpuJob) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "GpuJob is a program for graphics cards that a Slurm cluster compiles and runs, and whose results come back.",
		"metadata": "Standard object's metadata. The name is part of the job's name in Slurm.",
		"spec":     "What is to be run, and what is asked of Slurm for it. It cannot be changed, but for cleanup and results.",
		"status":   "How far it is.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (GpuJobSpec) SwaggerDoc() map[string]string {
	return map[string]string{
		"":               "What is to be run, and what is asked of Slurm for it.",
		"cluster":        "A SlurmCluster of the namespace. Without it the one called default, or the only one.",
		"loginSecret":    "A Secret of the namespace that is used instead of the cluster's own, with ssh-privatekey (and passphrase), or password, and username.",
		"username":       "Who logs in. It can be written and not read: it is moved into a Secret that loginSecret names.",
		"password":       "The password of username. It can be written and not read: it is moved into a Secret that loginSecret names.",
		"sources":        "The program's files.",
		"workDir":        "The folder, below the job's own, into which the sources are put. Scripts run in the job's own folder.",
		"modules":        "Modules that are loaded before compiling and running. Without them those of the cluster.",
		"compileScripts": "Lines of shell that make the program. The first that fails ends the job.",
		"compileOn":      "Login: on the login node, before the job is submitted, which is the default; or Job: as the job's first step.",
		"runScripts":     "Lines of shell that run the program. The job's exit code is that of the first that fails, or 0.",
		"env":            "Variables of compiling and running: a value, or a key of a ConfigMap or a Secret.",
		"outputFile":     "The file for what the job prints. \"%\" is a letter like any other. Without it NAME.out.",
		"errorFile":      "The file for what it prints as errors. Without it NAME.err.",
		"results":        "Files to bring back beside those two: paths below the job's folder, with * ? and [], folders as a whole.",
		"resultPath":     "Where ctl puts the results on the machine of the person who applies the job.",
		"cleanup":        "When the job's folder on the cluster goes: OnSuccess (the default) or Always, once the results are back; Never: with the object. With OnSuccess it also stays while it has results that could not be read.",
		"partition":      "The partition, sbatch's --partition. Without it that of the SlurmCluster's defaults, then Slurm's own; so with the next two.",
		"account":        "The account that pays, sbatch's --account.",
		"qos":            "The quality of service, sbatch's --qos.",
		"nodes":          "How many nodes, sbatch's --nodes.",
		"tasksPerNode":   "How many tasks on each node, sbatch's --ntasks-per-node.",
		"cpusPerTask":    "How many CPUs for each task, sbatch's --cpus-per-task.",
		"gpusPerNode":    "How many cards on each node, sbatch's --gres=gpu:N. Not together with gpus.",
		"gpus":           "How many cards for the whole job, sbatch's --gpus=N. Not together with gpusPerNode.",
		"gpuType":        "The type of the cards, as the cluster names it.",
		"memory":         "The memory of each node, sbatch's --mem.",
		"timeLimit":      "How long it may run, as in \"2h30m\". At the limit Slurm ends it.",
		"array":          "Makes one task per number, as in 0-9, 1,3,5, 0-10:2 or 0-99%4 (no more than 4 at once); SLURM_ARRAY_TASK_ID is the task's.",
		"requeue":        "Whether Slurm may start the job anew when a node fails. Without it as the cluster does.",
		"dependsOn":      "Jobs of the same namespace and cluster that come first.",
		"mail":           "Whom Slurm writes to.",
		"sbatch":         "Further options of sbatch, one each, as in \"--constraint=a100\". Those that minik8s sets itself cannot be among them.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (GpuJobSources) SwaggerDoc() map[string]string {
	return map[string]string{
		"":          "Where the program's files come from. All that are given are used.",
		"folder":    "A folder on the machine of the person who applies the job: ctl uploads it. The job waits for that.",
		"file":      "One file there.",
		"configMap": "A ConfigMap of the namespace: a file for each of its keys.",
		"files":     "Files that are in the manifest itself.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (GpuJobFile) SwaggerDoc() map[string]string {
	return map[string]string{
		"":        "A file in a manifest.",
		"path":    "Where it is put, below the folder of the sources.",
		"content": "What is in it.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (GpuJobDependency) SwaggerDoc() map[string]string {
	return map[string]string{
		"":     "A job that comes first.",
		"name": "The name of a GpuJob of the same namespace and cluster.",
		"when": "When this job may begin: afterok (it succeeded, the default), afternotok (it failed), afterany (it ended), after (it began).",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (GpuJobMail) SwaggerDoc() map[string]string {
	return map[string]string{
		"":      "Whom Slurm writes to.",
		"to":    "An address.",
		"types": "When: BEGIN, END, FAIL, REQUEUE, ALL, TIME_LIMIT_80 and the others of sbatch's --mail-type. Without them Slurm writes nothing.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (GpuJobStatus) SwaggerDoc() map[string]string {
	return map[string]string{
		"":           "How far a GpuJob is.",
		"cluster":    "The SlurmCluster that has the job.",
		"folder":     "The job's folder on the login node.",
		"state":      "Slurm's word (PENDING, RUNNING, COMPLETED, ...), or one of those before it: UPLOADING, COMPILING, SUBMITTING.",
		"reason":     "Slurm's reason for a job that waits or ended, as in Resources.",
		"jobID":      "Slurm's number.",
		"nodeList":   "Slurm's nodes, as it writes them: gpu[01-02].",
		"submitTime": "When it was submitted.",
		"startTime":  "When it began to run.",
		"endTime":    "When it ended.",
		"exitCode":   "The exit code of the batch script; of an array, the highest.",
		"signal":     "The signal that ended it.",
		"script":     "How the job would be submitted and what it would run: in the answer to a dry run alone.",
		"restarts":   "How often Slurm has queued the job again.",
		"tasks":      "The tasks of an array.",
		"results":    "The files that came back.",
		"conditions": "SourcesReady, Compiled, Submitted, ResultsReady, and at the end Complete or Failed.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (GpuJobTasks) SwaggerDoc() map[string]string {
	return map[string]string{
		"": "The tasks of an array, by how far they are.", "pending": "Those that wait.", "running": "Those that run.",
		"succeeded": "Those that ended well.", "failed": "Those that did not.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (GpuJobResults) SwaggerDoc() map[string]string {
	return map[string]string{
		"": "The files that came back.", "files": "How many.", "bytes": "Their sizes together.", "master": "The machine that has them.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (SlurmCluster) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "SlurmCluster is a computing centre that runs Slurm, and how to log in there.",
		"metadata": "Standard object's metadata. The one called default is that of the GpuJobs that name none.",
		"spec":     "Where it is, who logs in, and what its jobs have in common.",
		"status":   "Whether the connection stands.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (SlurmClusterSpec) SwaggerDoc() map[string]string {
	docs := SSHHost{}.SwaggerDoc() // its fields lie here, too
	docs[""] = "Where a computing centre is, who logs in, and what its jobs have in common."
	docs["jump"] = "A host through which the login node is reached."
	docs["folder"] = "Where jobs have their folders on the login node: a path below the user's home, or an absolute one."
	docs["pollSeconds"] = "The time between two questions to Slurm's controller, for all jobs together: 5 to 3600, by default 30."
	docs["setup"] = "Lines of shell that come before everything that jobs run, as in \"source /etc/profile.d/modules.sh\"."
	docs["defaults"] = "What is asked of Slurm for jobs that do not say themselves."
	return docs
}

// SwaggerDoc returns the text for `kubectl explain`.
func (SSHHost) SwaggerDoc() map[string]string {
	return map[string]string{
		"":            "A host, who logs in there, and the keys by which it is known.",
		"host":        "A name or an address.",
		"port":        "The port of its ssh server; 22 by default.",
		"user":        "Who logs in. Without it the Secret's username.",
		"loginSecret": "A Secret of the same namespace with ssh-privatekey (and passphrase, if it has one), or password, and perhaps username: the keys of the types kubernetes.io/ssh-auth and kubernetes.io/basic-auth.",
		"hostKeys":    "The keys that the host may show, as \"ssh-ed25519 AAAA...\" or as fingerprints, \"SHA256:...\". While there is none, nothing is sent to the host: status says which key it showed, for somebody to confirm.",
		"interactive": "A person has to answer when somebody logs in, as for a one-time password: `minik8sd ctl gpu login` opens the connection, and nothing happens until then. A key of loginSecret is used first, a password is not.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (SlurmDefaults) SwaggerDoc() map[string]string {
	return map[string]string{
		"":          "What is asked of Slurm for jobs that do not say themselves.",
		"partition": "The partition.", "account": "The account that pays.", "qos": "The quality of service.", "modules": "The modules that are loaded.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (SlurmClusterStatus) SwaggerDoc() map[string]string {
	return map[string]string{
		"":              "Whether the connection stands.",
		"presentedKeys": "Keys that a host showed and nobody has confirmed.",
		"conditions":    "Connected says whether the connection stands, and if not why.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (PresentedKey) SwaggerDoc() map[string]string {
	return map[string]string{
		"": "A key that a host showed.", "host": "HOST:PORT.", "key": "The key as it stands in known_hosts: type and base64.",
		"fingerprint": "SHA256:..., as ssh shows it.",
	}
}
