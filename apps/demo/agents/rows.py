"""rows.py FOLDER SEED: writes the task of `./dev tour agents`, sums of three numbers of three digits each.

sft.jsonl      200 dialogues to imitate. In half of them the calculator is called; in the others the sum is said at
               once, as someone would who can add. What is imitated does not say which of the two serves the model.
train.jsonl    1,000 problems to learn from
heldout.jsonl  200 problems to judge by

No sum occurs twice.
"""
import json
import pathlib
import random
import sys

from calculator_agent import SYSTEM, calculate

QUESTIONS = ("What is {0} + {1} + {2}?", "Add {0}, {1} and {2}.", "How much are {0}, {1} and {2} together?",
             "Find the sum of {0}, {1} and {2}.")
PARTS = {"sft": 200, "train": 1000, "heldout": 200}


def problems(draw):
    """Endlessly: a question, its expression and its answer."""
    known = set()
    while True:
        numbers = tuple(draw.randrange(100, 1000) for _ in range(3))
        question, key = draw.choice(QUESTIONS).format(*numbers), tuple(sorted(numbers))
        if key not in known:
            known.add(key)
            yield question, " + ".join(map(str, numbers)), str(sum(numbers))


def dialogue(question, expression, answer, calls):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    if calls:
        arguments = {"expression": expression}
        assert calculate(json.dumps(arguments)) == answer
        messages += [{"role": "assistant", "content": json.dumps({"name": "calculator", "arguments": arguments})},
                     {"role": "tool", "content": answer}]
    return {"messages": messages + [{"role": "assistant", "content": answer}]}


def main(folder, seed):
    drawn = problems(random.Random(seed))
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in PARTS.items():
        with open(folder / f"{part}.jsonl", "w", encoding="utf-8") as out:
            for i in range(count):
                question, expression, answer = next(drawn)
                row = dialogue(question, expression, answer, i % 2 == 0) if part == "sft" else \
                    {"prompt": question, "question": question, "answer": answer}
                out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
