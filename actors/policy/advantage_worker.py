"""Runs a user's function `advantage` for Troupe: reads one request per update, writes one reply.

A request is a line of JSON that names the arrays, then their numbers as little-endian 64-bit floats, one array
behind another. A reply is a line, then one or two such arrays with a number for every token (docs/write_an_advantage.md
has the user's view). What the function prints goes to standard error; the reply channel is a descriptor of its own.
"""
import array
import inspect
import json
import os
import sys

try:
    import numpy
except ImportError:
    numpy = None

BY_SAMPLE = ("scores", "groups", "lengths", "truncated", "episodes")
BY_TOKEN = (
    "advantages", "logprobs", "sampled_logprobs", "reference_logprobs", "teacher_logprobs", "versions", "values",
    "turns"
)
WHOLE = ("groups", "lengths", "versions", "episodes", "turns")  # arrays of whole numbers
GIVEN = ("update", "seed", *BY_SAMPLE, *BY_TOKEN)


def load(path):
    """The file's function, the names of the arguments that it is given, and whether it takes whatever there is."""
    module = user_module("user_advantage", path)
    function = getattr(module, "advantage", None)
    if not callable(function):
        raise ValueError(f"{path}: define a function `advantage`")
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return function, list(GIVEN), True
    names = [p.name for p in parameters if p.name in GIVEN]
    for p in parameters:
        if p.name not in GIVEN and p.default is inspect.Parameter.empty:
            raise ValueError(f"{path}: `advantage` has a parameter {p.name!r}; there are {', '.join(GIVEN)}")
    return function, names, False


def read_arrays(stream, request):
    """The arguments of the request that are lists: NumPy arrays where there is NumPy, else lists."""
    arrays = {}
    for name, count in request["arrays"]:
        numbers = array.array("d")
        numbers.frombytes(stream.read(8 * count))
        if sys.byteorder == "big":
            numbers.byteswap()
        if numpy is not None:
            arrays[name] = numpy.array(numbers, dtype=numpy.int64 if name in WHOLE else numpy.float64)
        else:
            arrays[name] = [int(x) for x in numbers] if name in WHOLE else list(numbers)
    return arrays


def numbers_of(name, value, lengths):
    """A number for every token, of a flat sequence or of one sequence for each sample."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    values = [one.tolist() if hasattr(one, "tolist") else one for one in value]
    if values and all(isinstance(one, (list, tuple)) for one in values):
        if [len(one) for one in values] != lengths:
            raise ValueError(f"{name}: the lists have other lengths than the samples")
        values = [x for one in values for x in one]
    if len(values) != sum(lengths):
        raise ValueError(f"{name}: {len(values)} numbers for the {sum(lengths)} tokens of {len(lengths)} samples")
    return array.array("d", (float(x) for x in values))


def answer(function, names, request, stream):
    arrays = read_arrays(stream, request)
    lengths = [int(x) for x in arrays["lengths"]]
    given = {"update": request["update"], "seed": request["seed"], **arrays}
    result = function(**{name: given.get(name) for name in names})
    if not isinstance(result, dict):
        result = {"advantages": result}
    unknown = set(result) - {"advantages", "weights"}
    if unknown or not result:
        raise ValueError("`advantage` returned a dict with " + (f"{sorted(unknown)[0]!r}" if unknown else "nothing") +
                         "; it may have 'advantages' and 'weights'")
    return {name: numbers_of(name, value, lengths) for name, value in result.items()}


def main():
    path, descriptor = sys.argv[1], int(sys.argv[2])
    replies = os.fdopen(descriptor, "wb")

    def say(line, *arrays):
        replies.write(json.dumps(line).encode() + b"\n")
        for numbers in arrays:
            if sys.byteorder == "big":
                numbers.byteswap()
            replies.write(numbers.tobytes())
        replies.flush()

    try:
        function, names, takes_all = load(path)
    except BaseException as error:
        say(unready(error))
        return 1
    say({"ready": True, "names": names, "all": takes_all})
    stream = sys.stdin.buffer
    for line in iter(stream.readline, b""):
        request = json.loads(line)
        try:
            result = answer(function, names, request, stream)
        except Exception as error:
            say({"id": request["id"], "error": trace(error)})
            return 1  # what is left of the request is not read
        say({"id": request["id"], "arrays": list(result)}, *result.values())
    return 0


sys.exit(main())
