"""Random agents that talk to a server's sessions by the stock `openai` package: dialogues that go on, fork, are
retried and cut off in mid-stream, whole and streamed, by chats and by token ids. `Campaign.turns` is the client's own
log of what it was given."""

import random

import openai

PATIENCE_S = 60
# Three ways to write the past. The second leaves out of every answer but the last all but its end, as some templates do
# with thinking; the third writes answers otherwise than the model did.
TEMPLATES = {
    "plain": "{% for m in messages %}{{ m.role }}: {{ m.content }}<|end|>{% endfor %}"
             "{% if add_generation_prompt %}assistant: {% endif %}",
    "drops": "{% for m in messages %}{{ m.role }}: "
             "{% if m.role == 'assistant' and not loop.last %}{{ m.content[-3:] }}"
             "{% else %}{{ m.content }}{% endif %}<|end|>{% endfor %}"
             "{% if add_generation_prompt %}assistant: {% endif %}",
    "trims": "{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}<|end|>\n{% endfor %}"
             "{% if add_generation_prompt %}[assistant]{% endif %}",
}


class Session:
    """One session of a server, and the dialogues that its client has had in it."""

    def __init__(self, address, opened):
        self.id = opened["id"]
        self.client = openai.OpenAI(base_url=opened["base_url"], api_key="none", max_retries=0, timeout=PATIENCE_S)
        self.by_key = openai.OpenAI(base_url=address + "/v1", api_key=opened["api_key"], max_retries=0,
                                    timeout=PATIENCE_S)
        self.dialogues = [[]]  # lists of messages
        self.sequences = []    # prompts and answers of calls by ids


class Campaign:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.turns = []  # (session, prompt ids, drawn ids, log-probs), of answers that came whole
        self.lost = 0    # answers that did not
        self.begin = [1]  # the ids that prompts of ids begin with

    def step(self, session):
        """One call of some kind."""
        kind = self.random.random()
        if kind < 0.15:
            return self.by_ids(session)
        messages = self.random.choice(session.dialogues)
        if messages and kind < 0.3:  # back to an earlier place
            messages = messages[:2 * self.random.randrange(len(messages) // 2)]
        messages = messages + [{"role": "user", "content": self.word()}]
        client = session.by_key if self.random.random() < 0.3 else session.client
        given = dict(model="tiny", messages=messages, max_tokens=self.random.randint(1, 12), logprobs=True,
                     extra_body={"return_token_ids": True})
        if kind < 0.45:
            self.cut_stream(client, given)
            given["extra_headers"] = {"x-stainless-retry-count": "1"}
        answer = self.streamed(client, given) if kind > 0.7 else self.whole(client, given)
        ids, drawn, logprobs, content = answer
        self.turns.append((session.id, ids, drawn, logprobs))
        session.dialogues.append(messages + [{"role": "assistant", "content": content}])
        if len(session.dialogues) > 6:
            session.dialogues.pop(0)

    def whole(self, client, given):
        answer = client.chat.completions.create(**given)
        choice = answer.choices[0]
        return (answer.prompt_token_ids, choice.token_ids, [one.logprob for one in choice.logprobs.content],
                choice.message.content)

    def streamed(self, client, given):
        ids, drawn, logprobs, content = None, [], [], ""
        for chunk in client.chat.completions.create(stream=True, **given):
            ids = getattr(chunk, "prompt_token_ids", None) or ids
            for choice in chunk.choices:
                content += choice.delta.content or ""
                drawn += getattr(choice, "token_ids", None) or []
                if choice.logprobs is not None:
                    logprobs += [one.logprob for one in choice.logprobs.content or []]
        return ids, drawn, logprobs, content

    def cut_stream(self, client, given):
        """Leaves after the first event of a longer answer."""
        with client.chat.completions.create(stream=True, **{**given, "max_tokens": 200}) as stream:
            next(iter(stream))
        self.lost += 1

    def by_ids(self, session):
        """As clients do that keep the tokens themselves."""
        sequence = self.random.choice(session.sequences) if session.sequences else self.begin
        prompt = sequence + [self.random.randrange(256) for _ in range(self.random.randint(1, 6))]
        answer = session.client.completions.create(
            model="tiny", prompt=prompt, max_tokens=self.random.randint(1, 8), logprobs=0,
            extra_body={"return_token_ids": True})
        choice = answer.choices[0]
        self.turns.append((session.id, prompt, choice.token_ids, choice.logprobs.token_logprobs))
        session.sequences.append(prompt + choice.token_ids)
        if len(session.sequences) > 6:
            session.sequences.pop(0)

    def word(self):
        return "".join(self.random.choice("abc é\n") for _ in range(self.random.randint(1, 8)))
