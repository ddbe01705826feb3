"""Three ways to write a dialogue, each as a chat template and in Python, and the ids that the next call of a session
must then have as its prompt, told from what its client was given."""

import collections
import json
import re

from agent_model import CALLS, TOOLS
from byte_model import END

# The second leaves out of every answer but the last all but its end, as some templates do with thinking; the third
# writes answers otherwise than the model did.
_TOOLS = "{% if tools %}tools:{% for t in tools %} {{ t.function.name }}{% endfor %}<|end|>{% endif %}"
_CALLS = ("{% for c in m.tool_calls or [] %}<tool_call>"
          "{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}</tool_call>{% endfor %}")
TEMPLATES = {
    "plain": _TOOLS + "{% for m in messages %}{{ m.role }}: {{ m.content or '' }}" + _CALLS + "<|end|>{% endfor %}"
             "{% if add_generation_prompt %}assistant: {% endif %}",
    "drops": _TOOLS + "{% for m in messages %}{{ m.role }}: "
             "{% if m.role == 'assistant' and not loop.last %}{{ (m.content or '')[-3:] }}"
             "{% else %}{{ m.content or '' }}{% endif %}" + _CALLS + "<|end|>{% endfor %}"
             "{% if add_generation_prompt %}assistant: {% endif %}",
    "trims": _TOOLS + "{% for m in messages %}[{{ m.role }}]{{ (m.content or '') | trim }}" + _CALLS + "<|end|>\n"
             "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}",
}
# All of them in one, for the one model of a run: a request says which by chat_template_kwargs.
BY_STYLE = ("{% if style == 'drops' %}" + TEMPLATES["drops"] + "{% elif style == 'trims' %}" + TEMPLATES["trims"]
            + "{% else %}" + TEMPLATES["plain"] + "{% endif %}")
_SPECIAL = {text: END + i for i, text in enumerate(["<|end|>", *CALLS])}
_SPLIT = re.compile("(" + "|".join(map(re.escape, _SPECIAL)) + ")")


def encode(text):
    ids = []
    for part in _SPLIT.split(text):
        ids += [_SPECIAL[part]] if part in _SPECIAL else part.encode()
    return ids


def key(messages):
    return json.dumps(messages, sort_keys=True)


class Past:
    """What was said in one session: the ids of every dialogue that ends with an answer, as they were drawn."""

    def __init__(self, style, tools):
        self.style, self.tools, self.sequences = style, tools, {}
        self.ways = collections.Counter()  # how many calls went which way

    def prompts(self, messages):
        """The prompts that a call with these messages may have, several where answers of equal text were drawn as
        different ids; and the way in which it comes by them."""
        way = "new"
        for count in range(len(messages) - 1, 0, -1):
            before = self.sequences.get(key(messages[:count]))
            if before is None:
                continue
            if self.style == "drops" and len(messages[count - 1]["content"] or "") > 3:
                way = "rewritten"
                break
            behind = encode(("\n" if self.style == "trims" else "") + self.text(messages[count:]))
            return [ids + ([] if ids[-1] == END else [END]) + behind for ids in before], "going on"
        names = "".join(" " + tool["function"]["name"] for tool in TOOLS)
        return [encode((f"tools:{names}<|end|>" if self.tools else "") + self.text(messages))], way

    def add(self, messages, ids, way):
        self.sequences.setdefault(key(messages), []).append(ids)
        self.ways[way] += 1

    def text(self, messages):
        opening = "[assistant]" if self.style == "trims" else "assistant: "
        return "".join(map(self.message, messages)) + opening

    def message(self, message):
        content = message.get("content") or ""
        calls = "".join("<tool_call>" + json.dumps({"name": one["name"], "arguments": json.loads(one["arguments"])},
                                                   ensure_ascii=False) + "</tool_call>"
                        for one in (call["function"] for call in message.get("tool_calls") or []))
        if self.style == "trims":
            return f"[{message['role']}]{content.strip()}{calls}<|end|>\n"
        if self.style == "drops" and message["role"] == "assistant":
            content = content[-3:]
        return f"{message['role']}: {content}{calls}<|end|>"
