package minik8s

// SwaggerDoc returns the text for `kubectl explain`.
func (Function) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "Function is a program that runs while it is called: its instances are pods that come with the first call and go when nobody calls any more.",
		"metadata": "Standard object's metadata. The name may have capitals and underscores.",
		"spec":     "The program, and how it is run. A change takes effect for the next call.",
		"status":   "Whether it can be called, and how many instances it has.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (FunctionSpec) SwaggerDoc() map[string]string {
	return map[string]string{
		"":                  "The program, and how it is run.",
		"source":            "The Python file. It defines main(params), which takes and returns JSON, or run(arg), which takes and returns text, and check(arg), if the function has branches.",
		"files":             "Further files beside it, as modules that it imports.",
		"preRun":            "A shell script that each instance runs once, before it takes calls.",
		"image":             "Instead of source: an image that answers HTTP on port.",
		"port":              "The port of image. 8080 by default.",
		"env":               "Variables of the instances: a value, or a key of a ConfigMap or a Secret.",
		"resources":         "What an instance may use, and what it is sure to have. Without a limit of memory it has 256Mi.",
		"version":           "v2, the default: an instance has the file loaded and serves many calls; or v1: each call has a process of its own, in which nothing has run before.",
		"timeoutSeconds":    "How long a call may take, its wait for an instance included. 60 by default.",
		"concurrency":       "How many calls one instance has at a time, at most. 10 by default.",
		"targetConcurrency": "How many it is to have on average; there are as many instances as that asks for. Seven tenths of concurrency by default.",
		"minInstances":      "How many instances there are even when nobody calls. 0 by default.",
		"maxInstances":      "How many instances there are at most. 10 by default.",
		"initialInstances":  "How many instances come with the function, before anybody calls; they go when idle as all do. 0 by default.",
		"idleSeconds":       "How long nobody has called when the instances begin to go, one after the other. 60 by default.",
		"resultSeconds":     "How long the result of a call is kept for who asks for it later. 3600 by default.",
		"retry":             "WhenUnsent, the default: a call goes to another instance if nothing of it was sent to the first; or Never.",
		"address":           "The address of a Service of its own, by which pods and nodes call it (POST http://ADDRESS/), also from zero: any free address, or Auto. Without it there is no Service.",
		"triggers":          "Events that call the function: a schedule, or changes of objects. Such a call is a FunctionCall.",
		"left":              "The function that comes next, with what this one returned, if check(arg) is true. RETURN, or nothing: the result is the caller's.",
		"right":             "The function that comes next if check(arg) is not true, or if there is no check.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (FunctionFile) SwaggerDoc() map[string]string {
	return map[string]string{
		"":        "A file of a function.",
		"path":    "Where it is, below the folder of the source.",
		"content": "What is in it, as text.",
		"data":    "What is in it, as any bytes. Instead of content.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (FunctionStatus) SwaggerDoc() map[string]string {
	return map[string]string{
		"":                   "Whether a function can be called, and how many instances it has.",
		"observedGeneration": "The generation of which the rest is said.",
		"image":              "What instances run, by its digest.",
		"platform":           "A sum of what the image stands on, a base and the program that calls functions.",
		"instances":          "How many instances exist.",
		"readyInstances":     "How many of them take calls.",
		"address":            "The address of its Service, if it has one.",
		"lastCallTime":       "About when it was last called. It is written when the number of instances changes.",
		"triggers":           "How far each trigger has come.",
		"conditions":         "Ready: whether it can be called, and if not, why. Addressed: whether it has the address that it asks for. TriggersHeldBack: that objects change faster than triggers call.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (FunctionCall) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "FunctionCall is a call whose caller does not wait. It runs once or, if a master is lost meanwhile, more often, and goes some time after its end.",
		"metadata": "Standard object's metadata.",
		"spec":     "What is called with what. It cannot be changed.",
		"status":   "How it went.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (FunctionCallSpec) SwaggerDoc() map[string]string {
	return map[string]string{
		"":            "What is called with what.",
		"function":    "A Function of the namespace.",
		"body":        "The argument, in base64.",
		"contentType": "The argument's type.",
		"caller":      "Who called.",
		"traceParent": "The trace that the call is part of, as in the header traceparent of W3C Trace Context. One is made if it is not given.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (FunctionCallStatus) SwaggerDoc() map[string]string {
	return map[string]string{
		"":            "How a call went.",
		"state":       "Empty before it has begun, then Running, Succeeded or Failed.",
		"fault":       "Of a failed call, whose fault it was: function, caller or platform.",
		"startTime":   "When it began.",
		"endTime":     "When it ended.",
		"function":    "The function that gave the result: the last of a chain.",
		"instance":    "The pod that gave the result.",
		"queued":      "How long it has waited for an instance.",
		"cold":        "Whether an instance was started for it.",
		"trace":       "The id of the call's trace, as in the instances' logs.",
		"steps":       "How many functions ran: more than 1 in a chain.",
		"result":      "What came back, or the text of the error, such as a traceback; in base64.",
		"contentType": "The result's type.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (FunctionTrigger) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "An event that calls a function: a schedule, or changes of objects.",
		"name":     "Its name, among those of the function.",
		"schedule": "When the function is called, as in a crontab: \"*/5 * * * *\", @hourly, \"@every 90s\". Of times that were missed, while no master ran, the last one is made up for.",
		"timeZone": "The clock of the schedule, as Europe/Berlin. UTC by default.",
		"body":     "The argument of calls by the schedule.",
		"object":   "Whose changes call the function. The argument has the trigger's name, the type of the change, and the object.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (FunctionObjectTrigger) SwaggerDoc() map[string]string {
	return map[string]string{
		"":              "The objects whose changes call a function. Who writes this must be allowed to list and watch them.",
		"apiVersion":    "The API version of the kind, as v1 or apps/v1.",
		"kind":          "The kind.",
		"allNamespaces": "Objects of all namespaces, not only of the function's.",
		"selector":      "The labels that they have; none: any.",
		"on":            "Which changes count: Created, Updated, Deleted. All by default.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (FunctionTriggerStatus) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "How far a trigger has come.",
		"name":     "The trigger's name.",
		"lastTime": "The last time of its schedule for which there is a call; with revision, about when that was the newest.",
		"revision": "The revision up to which changes of objects have their calls.",
	}
}
