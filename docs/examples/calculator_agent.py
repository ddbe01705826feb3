"""An agent for --env.command: it answers a sum by the stock `openai` package, and may call a calculator.

The row of its task needs the columns `question` and `answer`. It is an ordinary program: without the last function it
would run against any server of OpenAI's API.
"""
import json
import os
import re
import urllib.request

from openai import OpenAI

SYSTEM = ('You have a calculator. To use it, write {"name": "calculator", "arguments": {"expression": "1 + 2"}}. '
          "When you know the result, answer with the number alone.")
CALCULATOR = {"type": "function", "function": {
    "name": "calculator", "description": "adds and subtracts",
    "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}}}


def calculate(arguments):
    expression = str(json.loads(arguments).get("expression", ""))
    if not re.fullmatch(r"\d{1,6}( ?[+-] ?\d{1,6}){0,9}", expression):
        return "error: not a sum"
    return str(sum(int(part.replace(" ", "")) for part in re.findall(r"[+-]? ?\d+", expression)))


def solve(client, question, calculator=calculate):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    for _ in range(3):
        answer = client.chat.completions.create(model="policy", messages=messages, tools=[CALCULATOR], max_tokens=48)
        message = answer.choices[0].message
        messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
        for call in message.tool_calls or []:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": calculator(call.function.arguments)})
        if not message.tool_calls:
            break
    return message.content or ""


def is_right(said, answer):
    numbers = re.findall(r"-?\d+", said)
    return bool(numbers) and numbers[-1] == str(answer)


def reward(value):
    url = os.environ["OPENAI_BASE_URL"].removesuffix("/v1") + "/reward"
    key = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    urllib.request.urlopen(urllib.request.Request(url, json.dumps({"reward": value}).encode(), key)).read()


if __name__ == "__main__":
    task = json.loads(os.environ["TROUPE_TASK"])
    reward(float(is_right(solve(OpenAI(), task["question"]), task["answer"])))
