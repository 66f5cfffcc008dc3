def run(arg):
    return arg + " world"
