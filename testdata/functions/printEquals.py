def main(params):
    print("x equals 10")
    return {"printed": "equals", "x": params["x"]}
