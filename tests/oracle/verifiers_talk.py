"""An environment of the package verifiers for tests: the user says more after the first answer. The tokens that
verifiers got, with its rewards, lie in the folder `log`."""

import json
import pathlib

import verifiers.v1 as vf


class TalkConfig(vf.EnvConfig):
    speaker: vf.AgentConfig = vf.AgentConfig()
    log: str = ""


class Talk(vf.Env[TalkConfig]):
    async def run(self, task, agents):
        async with agents.speaker.interaction(task) as interaction:
            segment = await interaction.turn()
            if not segment.terminated:
                await interaction.turn("and then?")

    async def finalize(self, task, episode):
        trace, = episode.traces
        kept = {"reward": trace.reward, "rewards": {name: one.score for name, one in trace.rewards.items()}, "nodes": [
            {"parent": node.parent, "role": node.message.role, "ids": node.token_ids, "drawn": node.mask,
             "logprobs": node.logprobs} for node in trace.nodes]}
        (pathlib.Path(self.config.log) / episode.id).write_text(json.dumps(kept))


__all__ = ["Talk"]
