"""Runs a user's reward function for Troupe: reads one JSON request per line, writes one JSON reply per line.

Accepted signatures, told apart by parameter names (docs/write_a_reward.md has the user's view):
  OpenRLHF  reward_func(queries, prompts, labels, **kwargs) -> list | tensor | {"rewards": ..., "extra_logs": ...}
  TRL       f(prompts, completions, **columns)              -> list of float | None
  verl      compute_score(data_source, solution_str, ground_truth, extra_info) -> float | {"score": ...}
The function is called `reward_func`, `compute_score`, or is the file's only public function. Each may be
`async def`; then the requests of many groups run at the same time, replies come in any order, and
{"cancel": id} ends the one that takes too long. A plain function gets one request after another. What it
prints goes to standard error; the reply channel is a descriptor of its own.
"""
import asyncio
import inspect
import json
import math
import os
import sys

# Dataset columns that TRL does not pass to reward functions: it uses these names for the sample itself.
SAMPLED = ("prompt", "completion", "completion_ids")


def find_function(path):
    module = user_module("user_reward", path)
    for name in ("reward_func", "compute_score"):
        if callable(getattr(module, name, None)):
            return getattr(module, name)
    own = [f for n, f in vars(module).items()
           if inspect.isfunction(f) and not n.startswith("_") and f.__module__ == module.__name__]
    if len(own) == 1:
        return own[0]
    raise ValueError(f"{path}: define `reward_func` (found {len(own)} public functions, none of that name)")


def is_finite(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


class Extras:
    """What a function reports besides its scores: for each sample, values by name."""

    def __init__(self, count):
        self.of_sample = [{} for _ in range(count)]
        self.causes = {}  # of missing scores, by sample
        self.returned = []  # what stood in the place of a number, by sample

    def add(self, name, value):
        """A list or tensor of one value a sample, or one value that holds for all of them."""
        if hasattr(value, "tolist"):
            value = value.tolist()
        values = value if isinstance(value, (list, tuple)) else [value] * len(self.of_sample)
        if len(values) != len(self.of_sample):
            raise ValueError(f"{name!r} has {len(values)} values for {len(self.of_sample)} samples")
        for kept, one in zip(self.of_sample, values):
            if hasattr(one, "item"):
                one = one.item()
            if isinstance(one, float) and not math.isfinite(one):
                continue
            kept[str(name)] = one if isinstance(one, (bool, int, float, str)) else str(one)


class TrainerState:
    """The part of transformers' TrainerState that a reward can know here."""

    def __init__(self, update):
        self.global_step = update


class Function:
    """A user's function and how it is called."""
    # What TRL's form gives besides columns.
    GIVEN = {"prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric"}

    def __init__(self, function):
        self.function = function
        parameters = inspect.signature(function).parameters
        self.names = set(parameters)
        self.takes_rest = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        self.style = ("verl" if "solution_str" in self.names else
                      "trl" if "completions" in self.names else "openrlhf")
        self.loop = None

    def wishes(self):
        """What each request must contain: names of columns (None: all), message lists, token ids."""
        columns = None if self.style == "verl" or self.style == "trl" and self.takes_rest else []
        if self.style == "trl" and not self.takes_rest:
            columns = sorted(self.names - self.GIVEN)
        trl = self.style == "trl"
        return {"columns": columns, "needs": self.needs(), "messages": trl,
                "tokens": trl and (self.takes_rest or "completion_ids" in self.names)}

    def needs(self):
        """The columns without which it cannot be called."""
        if self.style != "trl":
            return []
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        return [name for name, one in inspect.signature(self.function).parameters.items()
                if one.default is inspect.Parameter.empty and one.kind in kinds and name not in self.GIVEN]

    def refuse_other_calls(self, path):
        """Refuses a function of fixed arguments that cannot be called with those of its form."""
        try:
            if self.style == "verl":
                names = ("data_source", "solution_str", "ground_truth", "extra_info")
                inspect.signature(self.function).bind(**dict.fromkeys(names))
            elif self.style == "openrlhf":
                names = ("queries", "prompts", "labels")
                given = dict.fromkeys(name for name in names if self.takes_rest or name in self.names)
                by_name = "queries" in self.names or self.takes_rest
                inspect.signature(self.function).bind(*(() if by_name else names), **(given if by_name else {}))
        except TypeError as error:
            raise ValueError(f"{path}: {self.function.__name__} is called with {', '.join(names)}: {error} "
                             "(docs/write_a_reward.md has the forms)") from None

    def is_async(self):
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(
            getattr(self.function, "__call__", None))

    def finished(self, result):
        """The value of a result that may be a coroutine. One event loop lives as long as the worker."""
        if not inspect.isawaitable(result):
            return result
        if self.loop is None:
            self.loop = asyncio.new_event_loop()

        async def wait():
            return await result
        return self.loop.run_until_complete(wait())

    def with_known(self, given):
        return self.function(**(given if self.takes_rest else
                                {key: value for key, value in given.items() if key in self.names}))

    def score(self, request, extras):
        """What the function returns; awaitable where it is async."""
        return getattr(self, "score_" + self.style)(request, extras)

    def score_verl(self, request, extras):
        results = [self.function(data_source=row.get("data_source", ""), solution_str=text,
                                 ground_truth=label, extra_info=row)
                   for row, text, label in zip(request["columns"], request["responses"], request["labels"])]
        if any(inspect.isawaitable(result) for result in results):
            async def together():
                return list(await asyncio.gather(*results))
            return together()
        return results

    def score_trl(self, request, extras):
        rows, prompts, completions = request["columns"], request["prompts"], request["responses"]
        messages = request.get("messages") or [None]
        if all(messages):  # a conversational dataset: message lists, as TRL passes them
            prompts = messages
            completions = [[{"role": "assistant", "content": text}] for text in completions]
        columns = {key: [row.get(key) for row in rows] for row in rows for key in row if key not in SAMPLED}
        given = {**columns, "prompts": prompts, "completions": completions,
                 "completion_ids": request.get("tokens"), "trainer_state": TrainerState(request.get("update", 0)),
                 "log_extra": extras.add, "log_metric": extras.add}
        return self.with_known(given)

    def score_openrlhf(self, request, extras):
        prompts, labels = request["prompts"], request["labels"]
        queries = [p + r for p, r in zip(prompts, request["responses"])]
        if "queries" in self.names or self.takes_rest:
            return self.with_known({"queries": queries, "prompts": prompts, "labels": labels})
        return self.function(queries, prompts, labels)


def to_number(value):
    if value is None:
        return None
    value = float(value)
    return value if math.isfinite(value) else None


def to_list(result, extras):
    """One number or None per sample; whatever else the result holds goes to `extras`."""
    count = len(extras.of_sample)
    if isinstance(result, dict):
        for name, value in (result.get("extra_logs") or {}).items():
            extras.add(name, value)
        result = result["rewards"] if "rewards" in result else result["scores"]
    if hasattr(result, "tolist"):
        result = result.tolist()
    if isinstance(result, (int, float)):
        result = [result]
    values = list(result)
    if len(values) != count:
        raise ValueError(f"the reward function returned {len(values)} values for {count} samples")
    for i, value in enumerate(values):
        if isinstance(value, dict):  # verl: a score and what else is to be logged
            for name, other in value.items():
                if name != "score" and is_finite(other):
                    extras.of_sample[i][str(name)] = other
            values[i] = value.get("score")
        elif isinstance(value, (list, tuple)) and len(value) == 1:
            values[i] = value[0]
    numbers = [to_number(value) for value in values]
    extras.returned = ["" if number is not None else shown(value) for number, value in zip(numbers, values)]
    return numbers


def shown(value):
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def by_sample(request):
    """The lists of a request, one entry per sample. In the request, samples of a group share their prompt."""
    groups = [(group, i) for group in request["groups"] for i in range(len(group["responses"]))]
    tokens = [group["tokens"][i] for group, i in groups]
    return {"id": request["id"], "update": request["update"],
            "prompts": [group["prompt"] for group, _ in groups],
            "responses": [group["responses"][i] for group, i in groups],
            "labels": [group["label"] for group, _ in groups],
            "columns": [dict(group["columns"]) for group, _ in groups],
            "messages": [group["messages"] for group, _ in groups],
            # When any sample has no token ids (texts of a file), the function gets None for all.
            "tokens": tokens if all(tokens) else None}


class Replies:
    """Writes one reply a line. The first with scores says what modules the user's file has loaded."""

    def __init__(self, descriptor, file=None):
        self.out, self.file = os.fdopen(descriptor, "w", buffering=1), file

    def write(self, reply):
        self.out.write(json.dumps(reply) + "\n")

    def scores(self, request, result, extras):
        try:
            rewards = to_list(result, extras)
            causes = [extras.causes.get(i, "") for i in range(len(rewards))]
            reply = {"id": request["id"], "rewards": rewards, "extras": extras.of_sample, "causes": causes,
                     "returned": extras.returned}
            if self.file is not None:
                reply["modules"], self.file = loaded_modules(self.file), None
            self.write(reply)
        except Exception as error:
            self.failed(request, error)

    def failed(self, request, error):
        self.write({"id": request["id"], "error": trace(error)})


def serve(function, replies):
    """One request after another."""
    for line in sys.stdin:
        given = json.loads(line)
        if "cancel" in given:
            continue  # of a function that has ended
        request = by_sample(given)
        extras = Extras(len(request["prompts"]))
        try:
            result = function.finished(function.score(request, extras))
        except Exception as error:
            replies.failed(request, error)
            continue
        replies.scores(request, result, extras)


async def serve_together(function, replies):
    """All requests at the same time."""
    async def answer(request):
        extras = Extras(len(request["prompts"]))
        try:
            result = function.score(request, extras)
            if inspect.isawaitable(result):
                result = await result
        except Exception as error:
            return replies.failed(request, error)
        replies.scores(request, result, extras)

    lines = asyncio.StreamReader(limit=1 << 30)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    tasks = {}
    while line := await lines.readline():
        given = json.loads(line)
        if "cancel" in given:
            if given["cancel"] in tasks:
                tasks[given["cancel"]].cancel()
            continue
        tasks[given["id"]] = task = asyncio.ensure_future(answer(by_sample(given)))
        task.add_done_callback(lambda _, done=given["id"]: tasks.pop(done))


def main():
    what, reply_fd = sys.argv[1], int(sys.argv[2])
    rule = globals().get("Rule")  # of a text in front of this one (rule_math.py, rule_code.py)
    replies = Replies(reply_fd, None if rule else what)
    try:
        function = rule(json.loads(what)) if rule else Function(find_function(what))
        if not rule:
            function.refuse_other_calls(what)
    except BaseException as error:
        replies.write(unready(error, type(error).__name__ == "Refusal"))
        return 1
    replies.write({"ready": True, "async": function.is_async(), **function.wishes()})
    if function.is_async():
        asyncio.run(serve_together(function, replies))
    else:
        serve(function, replies)
    return 0


sys.exit(main())
