def run(arg):
    return arg + " branch"
