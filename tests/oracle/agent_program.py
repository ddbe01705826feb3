"""An agent of a run: a few random calls by the stock `openai` package, and a reward for them. It leaves its own log of
what it was given in the folder that it is started with."""

import json
import os
import pathlib
import random
import sys
import urllib.request

import openai

from agent_campaign import PATIENCE_S, Campaign


class Session:
    def __init__(self):
        self.id = os.environ["OPENAI_API_KEY"]
        self.client = self.by_key = openai.OpenAI(max_retries=0, timeout=PATIENCE_S)
        self.dialogues, self.sequences = [[]], []


def main(folder):
    session = Session()
    campaign = Campaign(seed=session.id)
    campaign.begin = [10]  # all prompts of a group begin alike
    for _ in range(4):
        campaign.step(session)
    reward = random.Random(session.id).random()
    url = os.environ["OPENAI_BASE_URL"].removesuffix("/v1") + "/reward"
    urllib.request.urlopen(urllib.request.Request(url, json.dumps({"reward": reward}).encode())).read()
    log = {"turns": [turn[1:] for turn in campaign.turns], "lost": campaign.lost, "reward": reward}
    (folder / session.id).write_text(json.dumps(log))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
