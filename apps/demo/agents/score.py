"""score.py URL ROWS OUT [--broken]: the calculator agent tries every problem of ROWS once, at the server at URL.

Many problems at a time, in one process. OUT has a line for each: the row, the calls, the last answer and its score,
1 or 0. With --broken every call of the calculator is answered with an error, so the model is on its own.
"""
import concurrent.futures
import json
import os
import sys

from openai import OpenAI

from calculator_agent import calculate, is_right, solve

AT_A_TIME = 32


def attempt(client, row, broken):
    calls = []

    def calculator(arguments):
        calls.append(arguments)
        return "error: the calculator is broken" if broken else calculate(arguments)

    said = solve(client, row["question"], calculator)
    return {**row, "calls": calls, "response": said, "score": float(is_right(said, row["answer"]))}


def main(url, rows, out, *flags):
    client = OpenAI(base_url=url, api_key="none", max_retries=8)  # until the model is loaded
    with open(rows, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        done = list(pool.map(lambda row: attempt(client, row, flags == ("--broken",)), rows))
    with open(out + ".part", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in done)
    os.replace(out + ".part", out)


if __name__ == "__main__":
    main(*sys.argv[1:])
