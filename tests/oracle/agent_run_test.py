"""Runs that learn from random agents with the stock `openai` package while their generators are killed. What the
clients were given, token for token and bit for bit, is what the run has learned from (`troupe trace`), with the reward
of each; what the trainer counts and computes fits it; every prompt is what its dialogue was so far, as it was drawn;
and a fresh process with the weights of each token's version, which knows nothing of the run, gives every token the
same log-prob.
"""

import collections
import json
import os
import random
import re
import shlex
import sys
from math import ceil

import pytest

from agent_campaign import Agent, pool
from agent_dialogue import BY_STYLE
from agent_model import make_model
from agent_run import HERE, Killer, agents, learn, recompute, rollouts_of, tokens_of, traces_of, weights_of

TURNS = int(os.environ.get("TROUPE_TURNS", "2000"))
EPISODE_MAX, SHORT_EPISODE = 112, 12  # turns
PROMPTS, EPISODES = 3, 2
TASKS = [{"prompt": f"task {i}", "style": style, "tools": i >= 3}
         for i, style in enumerate(["plain", "drops", "trims"] * 2)]
KILLS = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("agents") / "tiny"
    make_model(path, BY_STYLE)
    return path


class Campaign:
    """A run of random agents of at least `turns` turns, and what was given to them and learned from."""

    def __init__(self, folder, path, turns, kills, *more):
        path.mkdir()
        updates = 4 if turns <= 4000 else 20
        prompts = PROMPTS * ceil(turns / (updates - 1) / (EPISODE_MAX * EPISODES * PROMPTS))
        self.per_update = prompts * EPISODES
        episode = ceil(turns / (updates - 1) / self.per_update)
        self.path, connections, chance = path, pool(), random.Random(turns)
        killer, pause = Killer(chance), turns / (kills + 1)
        at = pause / 2

        def agent_of(number, url, key, task):
            agent = Agent(url, key, connections, f"{turns} {number}", task["style"],
                          {"chat_template_kwargs": {"style": task["style"]}}, task["tools"])
            agent.update = number // self.per_update
            agent.episode = episode if agent.update > 0 else SHORT_EPISODE
            return agent

        with agents(path / "socket", agent_of, play) as playing:
            def meanwhile(run):
                nonlocal at
                if len(playing.errors) > self.per_update:  # else the run says why it ended
                    raise playing.errors[0]
                # Not so fast that a call is taken for the cause.
                if killer.times.total() < kills and playing.turns() >= at and killer.kill(run):
                    at = playing.turns() + pause * chance.uniform(0.5, 1)

            self.said = learn(folder, path, playing.command, TASKS, "--rollout.batch_size", prompts,
                              "--rollout.n_samples_per_prompt", EPISODES, "--train.max_steps", updates,
                              "--train.staleness_max", "1", "--env.turns_max", "100000", "--env.episodes_max", "24",
                              "--actor.adam.lr", "1e-3", "--ckpt.save_steps", "1", "--ckpt.max_num", updates, *more,
                              meanwhile=meanwhile)
        for error in playing.errors:
            raise error
        assert killer.times.total() == kills
        self.agents = playing.agents
        self.traces = traces_of(path / "run")
        self.rollouts = rollouts_of(path / "run")
        self.metrics = [json.loads(line) for line in (path / "run" / "metrics.jsonl").read_text().splitlines()]

    def turns(self):
        return [turn for turns in self.traces.values() for turn in turns]

    def crossed(self):
        """How many calls have tokens of several versions: a matter of time, which is why no test asserts it."""
        return sum(len(turn["metadata"]["versions"]) > 1 for turn in self.turns())


def play(agent):
    """An episode. Those of the first update are short, so that its weights come in the middle of calls of the second's,
    which begin when the trainer does."""
    for _ in range(20 if agent.update == 1 else 0):
        agent.long_call()
        if agent.turns[-1][3] != "v0":
            break
    while len(agent.turns) < agent.episode:
        agent.step()
    agent.reward(agent.random.random())


def learned(turn):
    return [turn["prompt_token_ids"], turn["completion_token_ids"], turn["per_token_logps"]]


def check_sets(campaign, by_turn=False):
    """Client, trace and rollouts are one set, episode by episode; `by_turn`: rewards of turns stay at their turns."""
    owner = {json.dumps(turn[:3]): agent for agent in campaign.agents for turn in agent.turns}
    assert len(campaign.agents) == len(campaign.traces) == len(campaign.rollouts)
    left = list(campaign.agents)
    for name, turns in campaign.traces.items():
        agent = owner[json.dumps(learned(turns[-1]))]
        left.remove(agent)  # which is once there
        given = collections.Counter(json.dumps(turn[:3]) for turn in agent.turns)
        kept = collections.Counter(json.dumps(learned(turn)) for turn in turns)
        only_given, only_kept = (given - kept).elements(), (kept - given).elements()
        assert tokens_of(map(json.loads, only_given)) == tokens_of(map(json.loads, only_kept)), name
        newest = {json.dumps(turn[:3]): turn[3] for turn in agent.turns}
        for turn in turns:
            prompt, drawn, _ = learned(turn)
            assert turn["loss_mask"] == [0] * len(prompt) + [1] * len(drawn)
            versions = turn["metadata"]["versions"]
            assert sum(count for _, count in versions) == len(drawn)
            assert newest.get(json.dumps(learned(turn))) in (None, f"v{versions[-1][0]}")
        samples = campaign.rollouts[name]
        may_be = [agent.rewards[None]]  # and what turns on the way of a sample have earned
        for turn, value in agent.rewards.items():
            may_be += [one + value for one in may_be] if by_turn and turn is not None else []
        assert all(min(abs(sample["rewards"]["feedback"] - one) for one in may_be) < 1e-9 for sample in samples)
        assert sorted(n for sample in samples for _, n in sample["turns"]) == sorted(
            len(turn["completion_token_ids"]) for turn in turns)


def check_trainer(campaign):
    """What the trainer counts, and that it gives the tokens of its first update the log-probs that they were drawn
    with: rows and masks are as the engine saw them."""
    drawn = collections.Counter()
    for (update, _, _), turns in campaign.traces.items():
        for turn in turns:
            for version, count in turn["metadata"]["versions"]:
                drawn[update - 1 - version] += count
    line = re.search(r"trained tokens by age in updates(.*)", campaign.said)[1]
    assert {int(age): int(count) for age, count in re.findall(r"(\d+): (\d+) \(", line)} == dict(drawn)
    assert set(drawn) == {0, 1}
    first = campaign.metrics[0]
    assert (first["kl/rollout_train"], first["async/rho_mean"], first["async/rho_max"]) == (0, 1, 1)


def test_every_token_of_a_campaign_is_learned_from_and_recomputed(folder, tmp_path):
    campaign = Campaign(folder, tmp_path / "campaign", TURNS, KILLS, "--rollout.kv_on_update", "recompute")
    assert sum(len(agent.turns) for agent in campaign.agents) >= TURNS
    for style in ("plain", "drops", "trims"):
        ways = sum((agent.past.ways for agent in campaign.agents if agent.past.style == style), collections.Counter())
        assert ways["going on"] > 0 and (ways["rewritten"] > 0) == (style == "drops")
    for count in ("lost", "called"):
        assert sum(getattr(agent, count) for agent in campaign.agents) > TURNS // 100, count
    check_sets(campaign)
    check_trainer(campaign)
    turns = [(tuple(ids + drawn), logprobs, turn["metadata"]["versions"])
             for turn in campaign.turns() for ids, drawn, logprobs in [learned(turn)]]
    print(campaign.crossed(), "calls over a swap of weights")
    versions = sorted({version for _, _, of_turn in turns for version, _ in of_turn})
    assert versions == list(range(len(campaign.metrics)))[:len(versions)] and len(versions) > 2
    checked = 0
    for version in versions:
        mine = [turn for turn in turns if any(one == version for one, _ in turn[2])]
        logprobs_of = recompute(weights_of(folder, campaign.path, version), [ids for ids, _, _ in mine])
        for ids, logprobs, of_turn in mine:
            by_token = [one for one, count in of_turn for _ in range(count)]
            again = logprobs_of(ids)[-len(logprobs):]
            assert [p for p, one in zip(again, by_token) if one == version] == [
                p for p, one in zip(logprobs, by_token) if one == version]
            checked += by_token.count(version)
    assert checked == sum(len(logprobs) for _, logprobs, _ in turns)


def test_where_keys_are_kept_ids_masks_and_versions_are_one_set(folder, tmp_path):
    campaign = Campaign(folder, tmp_path / "campaign", min(TURNS // 5, 2000), 0, "--rollout.kv_on_update", "keep",
                        "--env.turn_rewards", "true")
    rewards = sorted(value for agent in campaign.agents for turn, value in agent.rewards.items() if turn is not None)
    assert rewards == sorted(turn["metadata"]["reward"] for turn in campaign.turns() if "reward" in turn["metadata"])
    print(campaign.crossed(), "calls over a swap of weights")
    assert len(rewards) > 0
    check_sets(campaign, by_turn=True)
    check_trainer(campaign)


def test_an_agent_with_a_tool_runs_as_it_stands(folder, tmp_path):
    command = shlex.join([sys.executable, "-B", str(HERE / "../../docs/examples/calculator_agent.py")])
    rows = [{"prompt": "sum", "question": f"{i} + 2?", "answer": i + 2} for i in range(8)]
    learn(folder, tmp_path, command, rows, "--rollout.max_new_tokens", "24", "--rollout.batch_size", "1",
          "--rollout.n_samples_per_prompt", "2", "--train.max_steps", "1")
    traces = traces_of(tmp_path / "run")
    assert len(traces) == 2 and all(1 <= len(turns) <= 3 for turns in traces.values())
