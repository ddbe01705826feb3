"""Tools in TRL's form: a calculator, and a reward for the right answer that it was used for.

The same file works as `environment_factory=Calculator` of TRL's GRPOTrainer. Rows have `prompt` and `answer`.
"""


class Calculator:
    def reset(self, **row):
        self.wanted, self.results = str(row["answer"]), []

    def calculate(self, a: int, operation: str, b: int) -> int:
        """Computes with two numbers.

        Args:
            a: the first number
            operation: what to do with them (choices: ["+", "-", "*"])
            b: the second number

        Returns:
            the result
        """
        done = {"+": a + b, "-": a - b, "*": a * b}
        if operation not in done:
            raise ValueError(f"there is no operation {operation}")
        self.results.append(str(done[operation]))
        return done[operation]


def reward_func(environments, completions, **columns):
    return [float(one.wanted in one.results and one.wanted in completion[-1]["content"])
            for one, completion in zip(environments, completions)]
