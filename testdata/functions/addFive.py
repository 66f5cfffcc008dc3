def main(params):
    x = params["x"]
    x = x + 5
    result = { "x": x }
    return result
