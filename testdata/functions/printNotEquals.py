def main(params):
    print("x does not equal 10")
    return {"printed": "not equals", "x": params["x"]}
