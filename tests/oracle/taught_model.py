"""A tiny Llama that torch has taught to call a tool: it answers QUESTION with SAID, whatever is drawn.
`python taught_model.py FOLDER [QUESTION [TOOLS [SAID [WHOLE]]]]` writes it, all in JSON.
Who only asks it needs neither torch nor transformers."""

import json
import sys
from pathlib import Path

from byte_model import END, byte_tokenizer

SHAPE = dict(vocab_size=257, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=512, eos_token_id=END, bos_token_id=None,
             pad_token_id=END, tie_word_embeddings=False)
TEMPLATE = ("{% if tools %}tools: {{ tools | tojson }}\n{% endif %}{% for m in messages %}{{ m['role'] }}: "
            "{% if m.tool_calls %}{% for c in m.tool_calls %}<tool_call>"
            "{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}</tool_call>{% endfor %}"
            "{% else %}{{ m['content'] }}{% endif %}\n{% endfor %}"
            "{% if add_generation_prompt %}assistant: {% endif %}")
# What was said ends as it was said, so the past stays as it is.
LAST = "{% endfor %}{% if add"
ENDING = TEMPLATE.replace(LAST, "{% if m.role == 'assistant' %}<|end|>{% endif %}" + LAST)
TOOLS = [{"type": "function", "function": {
    "name": "add", "description": "a sum",
    "parameters": {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "integer"}}}}}]
QUESTION = [{"role": "user", "content": "1+2?"}]
SAID = 'Adding.<tool_call>{"name": "add", "arguments": {"b": 2, "a": 1}}</tool_call>'


def rendered(path, messages, tools=TOOLS):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(path).apply_chat_template(
        messages, tools=tools, add_generation_prompt=True, tokenize=True, return_dict=False)


def make_model(path, question=QUESTION, tools=TOOLS, said=SAID, whole=()):
    """`whole`: texts that are tokens as a whole."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    torch.set_num_threads(1)  # two would mostly wait for each other
    torch.manual_seed(3)
    model = LlamaForCausalLM(LlamaConfig(**{**SHAPE, "vocab_size": SHAPE["vocab_size"] + len(whole),
                                            "num_hidden_layers": 1, "max_position_embeddings": 1024}))
    model.save_pretrained(path)
    byte_tokenizer(path, whole)
    (path / "chat_template.jinja").write_text(TEMPLATE)
    prompt = rendered(path, question, tools)
    ids = torch.tensor([prompt + AutoTokenizer.from_pretrained(path).encode(said) + [END]])
    labels = ids.clone()
    labels[0, :len(prompt)] = -100
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.9, 0.99))
    for _ in range(2000):  # some 200 are enough
        loss = model(input_ids=ids, labels=labels).loss
        if loss.item() < 5e-4:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-3
    with torch.no_grad():
        model.lm_head.weight.mul_(2)  # what is likely becomes certain
    model.save_pretrained(path)


if __name__ == "__main__":
    make_model(Path(sys.argv[1]), *(json.loads(text) for text in sys.argv[2:]))
