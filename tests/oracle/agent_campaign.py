"""Random agents that talk to a session by the stock `openai` package: dialogues that go on, fork, call tools, are
asked twice and two at a time, retried, cut off in mid-stream and before the first byte, whole and streamed, by chats
and by token ids.
`Agent.turns` is the client's own log of what it was given."""

import random
import threading

import httpx
import openai

from agent_dialogue import Past
from agent_model import TOOLS

PATIENCE_S = 300
PROMPT_MAX = 250  # ids; then no dialogue goes on


def pool():
    """Connections that the clients of many agents share."""
    return httpx.Client(timeout=PATIENCE_S, limits=httpx.Limits(max_connections=None, max_keepalive_connections=64))


class Agent:
    """The client of one session."""

    def __init__(self, base_url, key, connections, seed, style="plain", kwargs=None, tools=False):
        by_path = openai.OpenAI(base_url=base_url, api_key=key, max_retries=0, http_client=connections)
        root = base_url[:base_url.index("/sessions/")] + "/v1"
        self.clients = [by_path, by_path.with_options(base_url=root, api_key=key)]
        self.url, self.connections = base_url.removesuffix("/v1"), connections
        self.headers = {"Authorization": f"Bearer {key}"}
        self.random = random.Random(seed)
        self.past = Past(style, tools)
        self.given = {"extra_body": {"return_token_ids": True, **(kwargs or {})}, **({"tools": TOOLS} if tools else {})}
        self.dialogues = [[]]  # lists of messages
        self.sequences = []    # prompts and answers of calls by ids
        (first, *_), _ = self.past.prompts([{"role": "user", "content": ""}])
        self.begin = first[:1]  # as all prompts of a session begin
        self.turns = []        # prompt ids, drawn ids, log-probs and the version of the last, of answers that came
        self.rewards = {}      # of turns, by their numbers
        self.lost = 0          # answers that did not come
        self.called = 0        # tools
        self.numbered = True   # the numbers of calls are those of turns

    def step(self):
        """A call of some kind, or two."""
        if self.random.random() < 0.12:
            return self.by_ids()
        messages, client, kind = self.asked(), self.random.choice(self.clients), self.random.random()
        given = self.call(messages, 160 if kind > 0.92 else self.random.randint(1, 12))
        answer, again = None, False
        if kind < 0.15:
            again = self.cut_stream(client, given)
        elif kind < 0.2 and self.is_new(messages):
            answer, again = self.in_time(client, given)
        elif kind < 0.25:
            return self.two_at_once(client, given)
        if again:
            given["extra_headers"] = {"x-stainless-retry-count": "1"}
        self.keep(messages, *(answer or self.random.choice([self.whole, self.whole, self.streamed])(client, given)))

    def asked(self):
        """The messages of a call: a dialogue that goes on, maybe from an earlier place, or what was asked before."""
        messages, kind = self.random.choice(self.dialogues), self.random.random()
        questions = [i for i, message in enumerate(messages) if message["role"] == "user"]
        if kind < 0.1 and questions:
            return messages[:self.random.choice(questions) + 1]
        if kind < 0.25 and questions:
            messages = messages[:self.random.choice(questions)]
        return messages + self.goes_on(messages)

    def is_new(self, messages):
        """Else nobody can know whether a lost answer, or the one before it, is asked for again."""
        prompts, _ = self.past.prompts(messages)
        return not any(turn[0] in prompts for turn in self.turns)

    def call(self, messages, tokens):
        return dict(model="tiny", messages=messages, max_tokens=tokens, logprobs=True, **self.given)

    def two_at_once(self, client, given):
        other, answers = self.asked(), []
        thread = threading.Thread(target=lambda: answers.append(self.streamed(client, self.call(other, 12))))
        thread.start()
        whole = self.whole(client, given)
        thread.join()
        self.numbered = False
        self.keep(given["messages"], *whole)
        self.keep(other, *answers.pop())

    def goes_on(self, messages):
        calls = (messages[-1].get("tool_calls") or []) if messages else []
        if calls and self.random.random() < 0.8:
            return [{"role": "tool", "tool_call_id": call["id"], "content": self.word()} for call in calls]
        return [{"role": "user", "content": self.word()}]

    def keep(self, messages, ids, drawn, logprobs, message, version):
        prompts, way = self.past.prompts(messages)
        assert ids in prompts, (messages, ids)
        self.turns.append([ids, drawn, logprobs, version])
        messages = messages + [message]
        self.called += len(message.get("tool_calls") or [])
        self.past.add(messages, ids + drawn, way)
        if len(ids) + len(drawn) < PROMPT_MAX:
            self.dialogues.append(messages)
        if len(self.dialogues) > 6:
            self.dialogues.pop(0)
        if self.numbered and self.random.random() < 0.3:
            self.reward(self.random.random(), len(self.turns) - 1)

    def reward(self, value, turn=None):
        body = {"reward": value} | ({} if turn is None else {"call": turn})
        self.connections.post(self.url + "/reward", json=body, headers=self.headers).raise_for_status()
        self.rewards[turn] = value

    def whole(self, client, given):
        answer = client.chat.completions.create(**given)
        choice = answer.choices[0]
        message = {"role": "assistant", "content": choice.message.content}
        if choice.message.tool_calls:
            message["tool_calls"] = [call.model_dump() for call in choice.message.tool_calls]
        return (answer.prompt_token_ids, choice.token_ids, [one.logprob for one in choice.logprobs.content], message,
                answer.system_fingerprint)

    def streamed(self, client, given):
        ids, drawn, logprobs, content, calls = None, [], [], "", {}
        for chunk in client.chat.completions.create(stream=True, **given):
            ids = getattr(chunk, "prompt_token_ids", None) or ids
            for choice in chunk.choices:
                content += choice.delta.content or ""
                for call in choice.delta.tool_calls or []:
                    one = calls.setdefault(call.index, {"id": call.id, "type": "function",
                                                        "function": {"name": call.function.name, "arguments": ""}})
                    one["function"]["arguments"] += call.function.arguments or ""
                drawn += getattr(choice, "token_ids", None) or []
                if choice.logprobs is not None:
                    logprobs += [one.logprob for one in choice.logprobs.content or []]
        message = {"role": "assistant", "content": content} | ({"tool_calls": list(calls.values())} if calls else {})
        return ids, drawn, logprobs, message, chunk.system_fingerprint

    def cut_stream(self, client, given, tokens=200):
        """Leaves after the first event of a longer answer."""
        with client.chat.completions.create(stream=True, **{**given, "max_tokens": tokens}) as stream:
            next(iter(stream))
        return self.lose()

    def in_time(self, client, given):
        """Does not wait for long. The answer, if one came, and whether to ask again."""
        try:
            return self.whole(client, {**given, "timeout": httpx.Timeout(PATIENCE_S, read=0.003)}), False
        except openai.APITimeoutError:
            return None, self.lose()

    def lose(self):
        self.lost += 1
        self.numbered = False
        return True

    def by_ids(self):
        """As clients do that keep the tokens themselves."""
        sequence = self.random.choice(self.sequences) if self.sequences else self.begin
        prompt = sequence + [self.random.randrange(256) for _ in range(self.random.randint(1, 6))]
        self.complete(prompt, max_tokens=self.random.randint(1, 8))
        self.sequences.append(prompt + self.turns[-1][1])
        if len(self.sequences) > 6 or len(prompt) > PROMPT_MAX:
            self.sequences.pop(0)

    def long_call(self):
        """One that keeps an engine busy, and its client only a little."""
        prompt = self.begin + [self.random.randrange(256) for _ in range(6)]
        self.complete(prompt, max_tokens=1900, ignore_eos=True)

    def complete(self, prompt, max_tokens, **more):
        answer = self.random.choice(self.clients).completions.create(
            model="tiny", prompt=prompt, max_tokens=max_tokens, logprobs=0,
            extra_body={"return_token_ids": True, **more})
        choice = answer.choices[0]
        assert choice.prompt_token_ids == prompt
        self.turns.append([prompt, choice.token_ids, choice.logprobs.token_logprobs, answer.system_fingerprint])

    def word(self):
        return "".join(self.random.choice("abc é\n") for _ in range(self.random.randint(1, 8)))
