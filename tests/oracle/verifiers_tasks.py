"""A taskset of the package verifiers for tests: sums, with or without a tool; long answers and calls are good."""

import verifiers.v1 as vf


class SumConfig(vf.TaskConfig):
    tool: bool = False


class SumData(vf.TaskData):
    answer: int


class Adder(vf.Toolset[vf.ToolsetConfig, vf.State]):
    @vf.tool
    async def add(self, a: int, b: int) -> str:
        """adds"""
        return str(a + b)


class Sum(vf.Task[SumData, vf.State, SumConfig]):
    @classmethod
    def toolsets(cls, config):
        return [Adder(vf.ToolsetConfig())] if config.tool else []

    @vf.reward(weight=0.25)
    async def length(self, trace) -> float:
        return len(trace.last_reply)

    @vf.reward
    async def right(self, trace) -> float:
        return sum(message.content == str(self.data.answer) for message in trace.tool_messages)


class SumsConfig(vf.TasksetConfig):
    task: SumConfig = SumConfig()


class Sums(vf.Taskset[Sum, SumsConfig]):
    def load(self):
        for _ in range(8):
            yield Sum(SumData(prompt="1+2?", answer=3), self.config.task)


__all__ = ["Sums"]

if __name__ == "__main__":
    Adder.run()
