"""Talks to `troupe serve` with the stock openai package (pip install openai).

usage: openai_client.py URL PROMPT [API_KEY]
"""

import sys

import openai

url, prompt = sys.argv[1], sys.argv[2]
client = openai.OpenAI(base_url=url + "/v1", api_key=sys.argv[3] if len(sys.argv) > 3 else "none")
model = client.models.list().data[0].id
messages = [{"role": "user", "content": prompt}]

answer = client.chat.completions.create(model=model, messages=messages, max_tokens=32, temperature=0)
print("answer:", repr(answer.choices[0].message.content))

stream = client.chat.completions.create(model=model, messages=messages, max_tokens=32, temperature=0,
                                        stream=True)
pieces = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
print("streamed:", repr("".join(pieces)))

# How likely does the model find this text? `echo` scores the prompt's own tokens.
scored = client.completions.create(model=model, prompt=prompt, max_tokens=1, temperature=0,
                                   logprobs=0, echo=True)
logprobs = scored.choices[0].logprobs.token_logprobs[1:-1]  # the first token has none; the last is new
print(f"log-prob of the prompt: {sum(logprobs):.3f} over {len(logprobs)} tokens")
