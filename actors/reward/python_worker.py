"""Runs a user's reward function for Troupe; one JSON request a line in, one JSON reply a line out.

Accepted signatures, told apart by parameter names:
  OpenRLHF  reward_func(queries, prompts, labels, **kwargs) -> list | tensor | {"rewards": ..., "scores": ...}
  TRL       f(prompts, completions, **columns)              -> list of float | None
  verl      compute_score(data_source, solution_str, ground_truth, extra_info) -> float | {"score": ...}
The function is called `reward_func`, `compute_score`, or is the file's only public function.
What it prints goes to standard error; the reply channel is a descriptor of its own.
"""
import importlib.util
import inspect
import json
import math
import os
import sys
import traceback


def find_function(path):
    spec = importlib.util.spec_from_file_location("user_reward", path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    for name in ("reward_func", "compute_score"):
        if callable(getattr(module, name, None)):
            return getattr(module, name)
    own = [f for n, f in vars(module).items()
           if inspect.isfunction(f) and not n.startswith("_") and f.__module__ == module.__name__]
    if len(own) == 1:
        return own[0]
    raise ValueError(f"{path}: define `reward_func` (found {len(own)} public functions, none of that name)")


def columns_of(rows):
    names = {}
    for row in rows:
        for key in row:
            names[key] = True
    return {key: [row.get(key) for row in rows] for key in names}


def columns_read(function):
    """Names of the columns of the dataset that the function is given; None: all of them."""
    names = inspect.signature(function).parameters
    if "solution_str" in names:
        return None
    if "completions" not in names:
        return []
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in names.values()):
        return None
    return sorted(set(names) - {"prompts", "completions"})


def call(function, request):
    names = inspect.signature(function).parameters
    prompts, responses, labels = request["prompts"], request["responses"], request["labels"]
    rows = request["columns"]
    if "solution_str" in names:
        return [function(data_source=row.get("data_source", ""), solution_str=text,
                         ground_truth=label, extra_info=row)
                for row, text, label in zip(rows, responses, labels)]
    takes_rest = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in names.values())
    if "completions" in names:
        given = {"prompts": prompts, "completions": responses, **columns_of(rows)}
        return function(**(given if takes_rest else {k: v for k, v in given.items() if k in names}))
    given = {"queries": [p + r for p, r in zip(prompts, responses)], "prompts": prompts, "labels": labels}
    if "queries" in names or takes_rest:
        return function(**(given if takes_rest else {k: v for k, v in given.items() if k in names}))
    return function(given["queries"], prompts, labels)


def to_number(value):
    if isinstance(value, dict):
        value = value.get("score")
    if value is None:
        return None
    value = float(value)
    return value if math.isfinite(value) else None


def to_list(result, count):
    if isinstance(result, dict):
        result = result["rewards"]
    if hasattr(result, "tolist"):
        result = result.tolist()
    if isinstance(result, (int, float)):
        result = [result]
    result = [to_number(v) for v in result]
    if len(result) != count:
        raise ValueError(f"the reward function returned {len(result)} values for {count} samples")
    return result


def main():
    path, reply_fd = sys.argv[1], int(sys.argv[2])
    replies = os.fdopen(reply_fd, "w", buffering=1)
    try:
        function = find_function(path)
        columns = columns_read(function)
    except BaseException:
        replies.write(json.dumps({"ready": False, "error": traceback.format_exc(limit=4)}) + "\n")
        return 1
    replies.write(json.dumps({"ready": True, "columns": columns}) + "\n")
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"id": request["id"], "rewards": to_list(call(function, request), len(request["prompts"]))}
        except Exception:
            reply = {"id": request["id"], "error": traceback.format_exc(limit=4)}
        replies.write(json.dumps(reply) + "\n")
    return 0


sys.exit(main())
