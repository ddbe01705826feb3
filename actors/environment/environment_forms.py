# The forms in which users write environments. Each opens episodes of the user's class; an episode has
# `open`, `step`, `finish` and `close`, and says what it has to say as a dictionary (docs/write_an_environment.md).
import ast
import math


class Refusal(Exception):
    """The file cannot be used; the text says why."""


async def finished(value):
    return await value if inspect.isawaitable(value) else value


def number(value, name):
    """A finite float of a number, tensor or array of one value; None stays None."""
    if value is None:
        return None
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, (bool, int, float)) and math.isfinite(value):
        return float(value)
    raise ValueError(f"`{name}` must be a finite number, it is {value!r}")


def added(total, value, name):
    """The sum, if it is a finite number, too."""
    if math.isfinite(total + value):
        return total + value
    raise ValueError(f"`{name}` is {value!r}, and with the {total!r} before it the episode has no finite sum; "
                     "give smaller numbers")


def numbers(values, name):
    """The numbers of a dictionary; other values are left out, since only numbers become metrics."""
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ValueError(f"`{name}` must be a dictionary, it is {type(values).__name__}")
    kept = {}
    for key, value in values.items():
        if hasattr(value, "item"):
            try:
                value = value.item()
            except (ValueError, RuntimeError):
                continue  # of several values
        if isinstance(value, (bool, int, float)) and math.isfinite(value):
            kept[str(key)] = float(value)
    return kept


def message_list(value, roles):
    """A list of chat messages; a text is one user message."""
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"messages must be a text or a list of messages, not {type(value).__name__}")
    for one in value:
        if not isinstance(one, dict) or one.get("role") not in roles:
            raise ValueError(f"a message must be a dictionary whose role is one of {', '.join(roles)}, not {one!r:.200}")
    return list(value)


PROMPT_ROLES = ("system", "user", "assistant", "tool")
ANSWER_ROLES = ("system", "user", "tool")


def accepts(function, name):
    """Whether a function has a parameter of that name."""
    return name in inspect.signature(function).parameters


class Start:
    """The start of an episode as the forms want it."""

    def __init__(self, given):
        self.prompt, self.messages, self.label = given["prompt"], given["messages"], given["label"]
        self.columns, self.seed = given["columns"], given["seed"]

    def row(self):
        row = dict(self.columns)
        row.setdefault("prompt", self.messages or self.prompt)
        row.setdefault("label", self.label)
        return row

    def seed_for(self, function):
        return {"seed": self.seed} if accepts(function, "seed") else {}


class Sum:
    """The rewards of an episode's turns; their sum is its score, unless it gives one."""

    def __init__(self):
        self.total, self.own = None, False

    def add(self, turn):
        if turn.get("score") is not None:
            self.own = True
        elif turn.get("reward") is not None:
            self.total = added(self.total or 0.0, turn["reward"], "reward")
            if not self.own:
                turn["score"] = self.total
        return turn


class OwnForm:
    """A class with `step(message)`, and maybe `reset(row)`, `finish()` and `close()`."""
    name = "own"

    def __init__(self, kind):
        self.kind = kind

    def episode(self, start):
        return OwnEpisode(self.kind(), start)


class OwnEpisode:
    KNOWN = ("messages", "text", "tools", "reward", "score", "done", "extras")

    def __init__(self, instance, start):
        self.instance, self.start, self.sum = instance, start, Sum()

    def turn(self, said, roles):
        if said is None:
            return {}
        if not isinstance(said, dict) or "role" in said:
            return {"messages": message_list(said, roles)}
        unknown = [key for key in said if key not in self.KNOWN]
        if unknown:
            raise ValueError(f"`{unknown[0]}` is not known; a turn has {', '.join(self.KNOWN)}")
        turn = {"done": bool(said.get("done", False)), "reward": number(said.get("reward"), "reward"),
                "score": number(said.get("score"), "score"), "extras": numbers(said.get("extras"), "extras")}
        if said.get("messages") is not None:
            turn["messages"] = message_list(said["messages"], roles)
        if said.get("text") is not None:
            if "messages" in turn:
                raise ValueError("a turn has `messages` or `text`, not both")
            if not isinstance(said["text"], str):
                raise ValueError("`text` must be a text; messages go under `messages`")
            turn["text"] = said["text"]
        if said.get("tools"):
            turn["tools"] = [tool_schema(one) if callable(one) else one for one in said["tools"]]
        return turn

    async def open(self):
        reset = getattr(self.instance, "reset", None)
        if reset is None:
            return {}
        row = [self.start.row()] if takes_row(inspect.signature(reset).parameters.values()) else []
        return self.turn(await finished(reset(*row, **self.start.seed_for(reset))), PROMPT_ROLES)

    async def step(self, given):
        turn = self.turn(await finished(self.instance.step(given["message"])), ANSWER_ROLES)
        if turn.get("tools"):
            raise ValueError("only `reset` can name tools")
        if not turn.get("done") and "messages" not in turn and "text" not in turn:
            raise ValueError("`step` returned neither `messages` (or `text`) nor `done`: the policy has nothing to answer")
        return self.sum.add(turn)

    async def finish(self):
        finish = getattr(self.instance, "finish", None)
        said = await finished(finish()) if finish else None
        if said is None or isinstance(said, dict):
            return self.sum.add(self.turn(said, ANSWER_ROLES))
        return {"score": number(said, "score")}

    def close(self, healthy):
        close = getattr(self.instance, "close", None)
        return close() if close else None


class OpenRlhfForm:
    """OpenRLHF's AgentInstance: `reset(states)` and `step(states)`, in texts."""
    name = "openrlhf"

    def __init__(self, kind):
        self.kind = kind

    def episode(self, start):
        return OpenRlhfEpisode(self.kind(), start)


class OpenRlhfEpisode:
    def __init__(self, instance, start):
        self.instance, self.start, self.total = instance, start, 0.0
        self.observed = start.prompt

    async def open(self):
        states = {"observation": self.start.prompt, "label": self.start.label}
        reset = getattr(self.instance, "reset", None)
        if reset is not None:
            states = await finished(reset(states, **self.start.seed_for(reset)))
        self.observed = states["observation"]
        if not isinstance(self.observed, str):
            raise ValueError(f"`observation` must be a text, it is {type(self.observed).__name__}")
        return {} if self.observed == self.start.prompt else {"text": self.observed}

    async def step(self, given):
        states = {"observation_text": self.observed, "action_text": given["text"], "label": self.start.label,
                  "sampling_params": None}
        result = await finished(self.instance.step(states))
        for name in ("rewards", "environment_feedback", "done"):
            if name not in result:
                raise ValueError(f"`step` returned no `{name}`")
        feedback = result["environment_feedback"]
        if not isinstance(feedback, str):
            raise ValueError(f"`environment_feedback` must be a text, it is {type(feedback).__name__}")
        self.observed += given["text"] + feedback
        reward = number(result["rewards"], "rewards") or 0.0
        self.total = added(self.total, reward, "rewards")
        extras = numbers(result.get("extra_logs"), "extra_logs")
        if result.get("scores") is not None:
            extras["scores"] = number(result["scores"], "scores")
        done = result["done"]
        turn = {"reward": reward, "score": self.total, "extras": extras,
                "done": bool(done.item() if hasattr(done, "item") else done)}
        return turn if turn["done"] and not feedback else {**turn, "text": feedback}

    async def finish(self):
        return {}

    def close(self, healthy):
        return None


class TrlForm:
    """TRL's environment_factory: `reset(**row)`, and the other public methods are tools."""
    name = "trl"

    def __init__(self, factories, rewards):
        self.factories = factories if isinstance(factories, dict) else {None: factories}
        self.many, self.rewards, self.pools, self.tools = isinstance(factories, dict), rewards, {}, {}
        for name, factory in self.factories.items():
            instance = factory()
            if not hasattr(type(instance), "reset"):
                raise Refusal(f"{type(instance).__name__} has no method `reset`")
            self.tools[name] = [tool_schema(getattr(instance, member)) for member in self.methods(instance)]
            self.pools[name] = [instance]
        if not any(self.tools.values()):
            raise Refusal(f"{type(instance).__name__} has neither `step` nor a public method that can be a tool")

    @staticmethod
    def methods(instance):
        return [name for name, _ in inspect.getmembers(type(instance), inspect.isfunction)
                if not name.startswith("_") and name not in ("reset", "get_reward")]

    def episode(self, start):
        name = start.columns.get("environment") if self.many else None
        if name not in self.factories:
            raise ValueError(f"the row's `environment` is {name!r}, which is none of {list(self.factories)}")
        pool = self.pools[name]
        return TrlEpisode(self, name, pool.pop() if pool else self.factories[name](), start)


class TrlEpisode:
    def __init__(self, form, name, instance, start):
        self.form, self.name, self.instance, self.start = form, name, instance, start
        self.messages, self.completion = None, []
        self.methods = {name: getattr(instance, name) for name in form.methods(instance)}
        self.calls = self.failures = 0

    async def open(self):
        row = dict(self.start.columns)
        if self.form.many:
            row.pop("environment", None)
        reset = self.instance.reset
        row = {**self.start.seed_for(reset), **row}
        said = await finished(reset(**row))
        prompt = list(self.start.messages or [{"role": "user", "content": self.start.prompt}])
        if isinstance(said, (str, list)):
            content = prompt[-1].get("content") or ""
            if isinstance(said, list) and isinstance(content, str):
                content = [{"type": "text", "text": content}]
            if isinstance(said, str) and isinstance(content, list):
                said = [{"type": "text", "text": said}]
            prompt[-1] = {**prompt[-1], "content": content + said}
        elif said is not None:
            raise ValueError(f"`reset` must return a text or None, it returned {type(said).__name__}")
        self.messages = prompt
        return {"messages": prompt, "tools": self.form.tools[self.name]}

    async def call(self, wanted):
        function = wanted.get("function") or {}
        name, arguments = function.get("name"), function.get("arguments")
        self.calls += 1
        try:
            if isinstance(arguments, str):
                arguments = json.loads(arguments or "{}")
            if name not in self.methods:
                raise ValueError(f"Tool {name} not found.")
            result = await finished(self.methods[name](**(arguments or {})))
        except Exception as error:
            self.failures += 1
            result = {"error": str(error)}
        content = result if isinstance(result, list) else str(result)
        message = {"role": "tool", "name": name or "unknown", "content": content}
        return {**message, "tool_call_id": wanted["id"]} if wanted.get("id") else message

    async def step(self, given):
        message = given["message"]
        self.completion.append(message)
        calls = message.get("tool_calls") or []
        if not calls:
            return {**await self.finish(), "done": True}
        results = list(await asyncio.gather(*[self.call(one) for one in calls]))
        self.completion += results
        return {"messages": results, "extras": self.extras()}

    def extras(self):
        return {"tool_calls": self.calls, "tool_failures": self.failures}

    async def finish(self):
        """The score: of `get_reward`, and of the file's functions that take `environments`."""
        turn = {"extras": self.extras()}
        scores = []
        if hasattr(type(self.instance), "get_reward"):
            scores.append(number(await finished(self.instance.get_reward()), "get_reward()"))
        for name, function in self.form.rewards.items():
            value = await finished(self.reward_of(function))
            values = value.tolist() if hasattr(value, "tolist") else list(value)
            if len(values) != 1:
                raise ValueError(f"{name} returned {len(values)} rewards for one environment")
            scores.append(number(values[0], name))
            if scores[-1] is not None:
                turn["extras"][name] = scores[-1]
        scores = [score for score in scores if score is not None]
        if not scores:
            return turn
        total = 0.0
        for score in scores:
            total = added(total, score, "the score of the episode")
        return {**turn, "score": total}

    def reward_of(self, function):
        given = {key: [value] for key, value in self.start.columns.items() if key not in ("prompt", "completion")}
        given.update(environments=[self.instance], prompts=[self.messages], completions=[self.completion],
                     completion_ids=None, trainer_state=None)
        given.update(log_extra=lambda *_: None, log_metric=lambda *_: None)
        parameters = inspect.signature(function).parameters
        if not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
            given = {key: value for key, value in given.items() if key in parameters}
        return function(**given)

    def close(self, healthy):
        if healthy:
            self.form.pools[self.name].append(self.instance)  # TRL constructs once and resets often


def stand_in_for_openrlhf():
    """The bases of OpenRLHF's agents, where it is not installed."""
    if importlib.util.find_spec("openrlhf") is not None:
        return
    names = ("openrlhf", "openrlhf.utils", "openrlhf.utils.agent")
    modules = {name: types.ModuleType(name) for name in names}

    class AgentInstanceBase:
        def __init__(self, *args, **kwargs):
            pass

        async def reset(self, states, **kwargs):
            return states

    class AgentExecutorBase:
        pass

    class MultiTurnAgentExecutor(AgentExecutorBase):
        def __init__(self, agent_instance_cls):
            self.agent_instance_cls = agent_instance_cls

    class SingleTurnAgentExecutor(AgentExecutorBase):
        pass
    for base in (AgentInstanceBase, AgentExecutorBase, MultiTurnAgentExecutor, SingleTurnAgentExecutor):
        setattr(modules[names[-1]], base.__name__, base)
    modules[names[0]].utils, modules[names[1]].agent = modules[names[1]], modules[names[2]]
    sys.modules.update(modules)


def class_lines(path):
    """The line of each class of a file."""
    with open(path, encoding="utf-8") as file:
        return {one.name: one.lineno for one in ast.walk(ast.parse(file.read())) if isinstance(one, ast.ClassDef)}


def takes_row(parameters):
    """Whether `reset` takes one argument, the row; None where it takes the row's columns by name."""
    named = [one for one in parameters if one.name not in ("self", "seed")]
    if not named:
        return False
    plain = named[0].kind in (named[0].POSITIONAL_ONLY, named[0].POSITIONAL_OR_KEYWORD)
    return True if len(named) == 1 and plain else None


def has_own_reset(kind):
    reset = getattr(kind, "reset", None)
    return reset is None or takes_row(inspect.signature(reset).parameters.values()) is not None


def find_form(module, path):
    """The form of what a user's file defines."""
    rewards = {name: one for name, one in vars(module).items()
               if inspect.isfunction(one) and one.__module__ == module.__name__ and accepts(one, "environments")}
    if hasattr(module, "environment_factory"):
        return TrlForm(module.environment_factory, rewards)
    own = {name: one for name, one in vars(module).items()
           if inspect.isclass(one) and one.__module__ == module.__name__ and not name.startswith("_")}
    bases = ("AgentInstanceBase",)
    agents = [one for name, one in own.items() if name == "AgentInstance" or any(
        base.__name__ in bases for base in one.__mro__[1:])]
    if len(agents) == 1:
        return OpenRlhfForm(agents[0])
    if agents:
        raise Refusal(f"{path}: define one agent, or name it AgentInstance (found "
                      f"{', '.join(one.__name__ for one in agents)})")
    executor = own.get("AgentExecutor")
    if executor is not None and hasattr(executor, "execute"):
        raise Refusal(f"{path}:{class_lines(path).get('AgentExecutor')}: AgentExecutor has an `execute` of its own, which drives an engine of "
                      "vLLM; write its `run_agent` as a program and give it as env.command")
    kinds = {name: one for name, one in own.items() if hasattr(one, "reset") or hasattr(one, "step")}
    kind = kinds.get("Environment") or (next(iter(kinds.values())) if len(kinds) == 1 else None)
    if kind is None:
        found = ", ".join(f"{name} in line {class_lines(path).get(name)}" for name in kinds) or "none"
        raise Refusal(f"{path}: define one class with `reset` or `step`, or name it Environment, or name TRL's "
                      f"environment_factory (found {found})")
    if hasattr(kind, "step") and has_own_reset(kind):
        return OwnForm(kind)
    return TrlForm(kind, rewards)


