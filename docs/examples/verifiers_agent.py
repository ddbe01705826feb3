"""Lets an environment of the package `verifiers` (0.4) answer the policy, for --env.command.

    PYTHON verifiers_agent.py TASKSET --rows 100 > rows.jsonl          the first 100 tasks, as a data set
    troupe train ppo run.yaml --data.prompt_dataset rows.jsonl --env.command "PYTHON verifiers_agent.py TASKSET"

PYTHON has verifiers installed; TASKSET is the name of a taskset, installed or a module of the folder where the run was
started. An episode is one of verifiers' with the policy in every seat, on this machine; its reward is what verifiers
gives. A second argument is more of the environment's configuration, as JSON or a file of it: a seat may have another
`harness` than the chat loop `null`, another `client`, its own limits.
"""
import argparse
import asyncio
import itertools
import json
import os
import pathlib
import statistics
import sys
import urllib.request

from verifiers.v1.clients import EvalClientConfig, ModelContext
from verifiers.v1.configs.agent import AgentConfig
from verifiers.v1.runtimes.subprocess import SubprocessRuntime
from verifiers.v1.utils.loaders import env_config_type, load_environment

SEAT = {"runtime": {"type": "subprocess"}, "harness": {"id": "null"}, "client": {"type": "eval"}}
POLICY = {"base_url": os.environ.get("OPENAI_BASE_URL", ""), "api_key_var": "OPENAI_API_KEY"}


async def in_this_environment(self, script, env=None, *, activate=True):
    """verifiers would let `uv` fetch its chat loop's packages for each user; here they are installed."""
    path = pathlib.Path(self.workdir) / "program.py"
    await self.write(path.name, script.encode() if isinstance(script, str) else script)
    return [sys.executable, str(path)]


SubprocessRuntime.prepare_uv_script = in_this_environment


def text_of(name):
    """A text that the run gives; long ones lie in files."""
    return os.environ[name] if name in os.environ else pathlib.Path(os.environ[name + "_FILE"]).read_text()


def environment(taskset, settings):
    if settings.endswith(".json"):
        settings = pathlib.Path(settings).read_text()
    given = json.loads(settings)
    given["taskset"] = {**given.get("taskset", {}), "id": taskset}
    kind = env_config_type(taskset, given.get("id", ""))
    for name, field in kind.model_fields.items():
        if isinstance(field.default, AgentConfig):
            seat = given[name] = {**SEAT, **given.get(name, {})}
            seat["client"] = {**POLICY, **seat["client"]}
    return load_environment(kind.model_validate(given))


async def play(env, row):
    task_type = type(env.taskset).task_type()
    task = task_type(task_type.data_type().model_validate(row["task"]), env.config.taskset.task)
    async with env.serving():
        return await env.run_episode(task, ModelContext(model="policy", client=EvalClientConfig(**POLICY)))


def reward(value):
    url = POLICY["base_url"].removesuffix("/v1") + "/reward"
    key = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    urllib.request.urlopen(urllib.request.Request(url, json.dumps({"reward": value}).encode(), key)).read()


def main():
    words = argparse.ArgumentParser()
    words.add_argument("taskset")
    words.add_argument("settings", nargs="?", default="{}")
    words.add_argument("--rows", type=int)
    given = words.parse_args()
    sys.path.insert(0, os.getcwd())
    os.environ["PYTHONPATH"] = os.getcwd()  # for the servers of tools that verifiers starts
    env = environment(given.taskset, given.settings)
    if given.rows is not None:
        for task in itertools.islice(env.taskset, given.rows):
            data = task.data.model_dump(mode="json", exclude_defaults=True)
            print(json.dumps({"input": task.data.prompt_text, "task": data}))
        return
    episode = asyncio.run(play(env, json.loads(text_of("TROUPE_TASK"))))
    errors = [error for trace in episode.traces for error in trace.errors] + episode.errors
    if not episode.ok:
        sys.exit("\n".join(f"{error.type}: {error.message}" for error in errors))
    reward(statistics.fmean(trace.reward for trace in episode.traces if trace.agent.trainable))


if __name__ == "__main__":
    main()
