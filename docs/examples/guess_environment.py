"""An environment of our own form: the policy guesses a number and hears whether its own is too high.

The seed of the group draws the number, so all episodes of a group look for the same one. The forms that an
environment may have are in docs/write_an_environment.md.
"""
import re


class Environment:
    def reset(self, row, seed):
        self.number, self.guesses = seed % 100, 0
        return "Guess my number, from 0 to 99. Answer with a number alone."

    def step(self, message):
        said = re.findall(r"\d+", message["content"] or "")
        self.guesses += 1
        if not said:
            return {"messages": "That is no number.", "reward": -0.1}
        guess = int(said[-1])
        if guess == self.number:
            return {"reward": 1.0, "done": True, "extras": {"guesses": self.guesses}}
        return "It is higher." if guess < self.number else "It is lower."

    def finish(self):
        return 0.0  # of an episode that a limit ended
