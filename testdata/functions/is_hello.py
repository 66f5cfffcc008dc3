def run(arg):
    return arg
def check(arg):
    return arg == "hello"
