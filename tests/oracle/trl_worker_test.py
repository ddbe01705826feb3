"""TRL's asynchronous rollout worker (AsyncGRPO), unedited, draws from a session of `troupe serve`: an agent with a
tool, two calls an episode. Its samples hold the ids and log-probs of the session's trace at the places that its mask
trains, and a server that knows nothing of them gives the same log-probs. Its client of the server's controls works,
too. How weights reach the server is not its affair but the trainer's, and that needs vLLM's transfer of weights.

The worker wants a package `vllm` to be installed, which it never uses: it is made with an empty package of that name
on its path. TRL's module for the transfer of weights would import parts of it, so the name is gone again when the
worker starts.
"""

import collections
import json
import sys

import numpy
import pytest
import requests
from accelerate import PartialState
from datasets import Dataset
from transformers import AutoTokenizer
from transformers.utils import get_json_schema
from trl.experimental.async_grpo.async_rollout_worker import AsyncRolloutWorker
from trl.experimental.async_grpo.vllm_client import VLLMClient

from byte_model import END
from served import PATIENCE_S, made_by, serve
from taught_model import ENDING

QUESTION = [{"role": "user", "content": "1+2?"}]
CALL = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
RESPONSE = {"defaults": {"role": "assistant"}, "start_anchor": "assistant: ", "fields": {
    "tool_calls": {"open": "<tool_call>", "close_pattern": "</tool_call>", "repeats": True, "content": "json",
                   "transform": {"type": "function", "function": "{content}"}},
    "content": {"close_pattern": r"<\|end\|>", "content": "text"}}}
SAMPLES, GROUP = 12, 3


def add(a: int, b: int) -> int:
    """
    A sum.

    Args:
        a: one
        b: another
    """
    return a + b


def length(completion_ids, **rest):
    return [float(len(ids)) for ids in completion_ids]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("worker") / "tiny"
    made_by("taught_model.py", path, *map(json.dumps, (QUESTION, [get_json_schema(add)], CALL)))
    (path / "chat_template.jinja").write_text(ENDING)
    return path


@pytest.fixture
def empty_vllm(tmp_path, monkeypatch):
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm/__init__.py").write_text('__version__ = "0.30.0"\n')
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        patch.delitem(sys.modules, "vllm", raising=False)
        yield patch


def asked(address, path, body=None):
    answer = requests.request("GET" if body is None else "POST", address + path, json=body, timeout=PATIENCE_S)
    answer.raise_for_status()
    return answer.json()


def drawn(sample):
    """The runs of tokens that are trained, each with what comes before it: a call's prompt."""
    edges = numpy.flatnonzero(numpy.diff(sample.completion_mask, prepend=0, append=0))
    for start, end in zip(edges[::2], edges[1::2]):
        yield sample.input_ids[:start].tolist(), sample.input_ids[start:end].tolist(), sample.old_log_probs[start:end]


def key(prompt, ids, logprobs):
    return json.dumps([prompt, ids, numpy.asarray(logprobs, numpy.float32).tolist()])


def test_its_samples_are_the_servers_tokens(folder, empty_vllm):
    PartialState()  # as a trainer does before it makes its worker
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.response_template = RESPONSE
    with serve(folder) as address:
        session = asked(address, "/sessions", {"in_path": True})["base_url"].removesuffix("/v1")
        worker = AsyncRolloutWorker(
            model_name="tiny", dataset=Dataset.from_list([{"prompt": QUESTION}]), reward_funcs=[length], tools=[add],
            processing_class=tokenizer, eos_token_ids=[END], num_generations=GROUP, max_inflight_tasks=6,
            queue_maxsize=SAMPLES, max_tokens=90, max_tool_calling_iterations=1,
            vllm_server_url=session)
        del sys.modules["vllm"]
        empty_vllm.undo()
        worker.start()
        try:
            samples = [worker.rollout_buffer.get(timeout=PATIENCE_S) for _ in range(SAMPLES)]
            worker.check_health(PATIENCE_S)
            control = VLLMClient(address)
            control.wait_for_server_ready()
            control.pause()
            assert asked(address, "/is_paused")["is_paused"]
            control.resume()
            samples += [worker.rollout_buffer.get(timeout=PATIENCE_S) for _ in range(SAMPLES)]
        finally:
            worker.stop()
        assert control.get_dtype() == "torch.float32"
        assert control.get_max_model_len() == 1024 and control.get_world_size() == 1
        turns = asked(session, "/traces")["turns"]
        served = collections.Counter(
            key(t["prompt_token_ids"], t["completion_token_ids"], t["per_token_logps"]) for t in turns)
        assert control.get_server_info()["model_config"]["max_model_len"] == 1024
    assert sorted(collections.Counter(sample.group_id for sample in samples).values())[-1] == GROUP
    with serve(folder) as address:
        for sample in samples:
            roles = [message["role"] for message in sample.completion]
            assert roles == ["assistant", "tool", "assistant"]
            assert sample.completion[1]["content"] == "3"
            assert len(sample.input_ids) == len(sample.completion_mask) == len(sample.old_log_probs)
            assert not sample.old_log_probs[sample.completion_mask == 0].any()
            runs = list(drawn(sample))
            assert len(runs) == 2 and runs[0][1] == [*CALL.encode(), END]
            served.subtract(key(*run) for run in runs)
            whole = sample.input_ids.tolist()
            echo = asked(address, "/v1/completions", dict(model="tiny", prompt=whole, max_tokens=0, echo=True,
                                                          logprobs=0))
            again = numpy.asarray(echo["choices"][0]["logprobs"]["token_logprobs"][1:], numpy.float32)
            trained = sample.completion_mask[1:] == 1
            assert (again[trained] == sample.old_log_probs[1:][trained]).all()
    assert min(served.values()) >= 0, "every call of a sample is one of the trace, once"
    assert any((sample.old_log_probs < -0.1).any() for sample in samples)
