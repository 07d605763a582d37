"""A model as one file that holds numbers and text, never code.

atomic      a file is replaced at once or not at all
container   the file: arrays and a header of facts, in the format of safetensors, read strictly
values      how numbers, labels, names, rules and strings are written as JSON, and checked when they are read
parts       facts and arrays by name: what `to_parts` returns and `from_parts` takes
saving      `save` and `load` of learners, and their parameters
registry    where each class is, and `load` of any model
export      linear models as ONNX and as text
"""
