"""An agent of one call, by the standard library alone. `python fixed_agent.py FOLDER NAME [JSON]` keeps what it was
given; JSON: more fields of the call."""

import json
import os
import sys
import time
import urllib.request


def post(url, body):
    return json.loads(urllib.request.urlopen(urllib.request.Request(
        url, json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})).read())


base = os.environ["OPENAI_BASE_URL"]
time.sleep(0.2)  # as if it worked
answer = post(base + "/completions", {"model": "any", "prompt": [97, 98], "max_tokens": 5, "logprobs": 0,
                                      "return_token_ids": True, **json.loads((sys.argv + ["{}"])[3])})
choice = answer["choices"][0]
turn = [[97, 98], choice["token_ids"], choice["logprobs"]["token_logprobs"]]
with open(os.path.join(sys.argv[1], f"{sys.argv[2]}-{os.getpid()}.json"), "w") as file:
    json.dump({"turns": [turn], "text": choice["text"]}, file)
post(base.removesuffix("/v1") + "/reward", {"reward": len(choice["token_ids"]) / 8})
