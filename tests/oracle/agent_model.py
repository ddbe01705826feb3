"""A tiny Llama with random weights over bytes, some tokens of which are whole calls of tools, so that agents get some.
Needs numpy alone."""

import json
import struct

import numpy

from byte_model import END, byte_tokenizer

TOOLS = [{"type": "function", "function": {"name": name, "parameters": {
    "type": "object", "properties": {"a": {"type": "integer"}}}}} for name in ("add", "find")]
# Written otherwise than a template writes them, and two that are no calls of these tools.
CALLS = ['<tool_call>{"name":"add","arguments":{"a":1}}</tool_call>',
         '<tool_call>{"arguments":{},"name":"find"}</tool_call>',
         '<tool_call>\n{"name": "find", "arguments": {"a": 2, "b": "\\u00e9"}}\n</tool_call>',
         '<tool_call>{"name":"add","arguments":{"a":10}}</tool_call>',
         '<tool_call>{"name":"nobody","arguments":{}}</tool_call>',
         '<tool_call>{"name":}</tool_call>']
WIDTH, INNER, LAYERS, HEADS, KEYS, CONTEXT = 64, 160, 2, 4, 2, 4096


def make_model(folder, template, seed=5):
    """Writes the model folder."""
    folder.mkdir()
    vocabulary = END + 1 + len(CALLS)
    byte_tokenizer(folder, CALLS)
    (folder / "chat_template.jinja").write_text(template)
    (folder / "config.json").write_text(json.dumps(dict(
        architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=vocabulary, hidden_size=WIDTH,
        intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=KEYS,
        max_position_embeddings=CONTEXT, hidden_act="silu", rms_norm_eps=1e-6, rope_theta=10000.0,
        tie_word_embeddings=False, bos_token_id=None, eos_token_id=END, pad_token_id=END, dtype="float32")))
    shapes = {"model.embed_tokens.weight": (vocabulary, WIDTH), "model.norm.weight": (WIDTH,),
              "lm_head.weight": (vocabulary, WIDTH)}
    keys = WIDTH // HEADS * KEYS
    for layer in range(LAYERS):
        shapes |= {f"model.layers.{layer}.{name}.weight": shape for name, shape in {
            "input_layernorm": (WIDTH,), "post_attention_layernorm": (WIDTH,), "self_attn.q_proj": (WIDTH, WIDTH),
            "self_attn.k_proj": (keys, WIDTH), "self_attn.v_proj": (keys, WIDTH), "self_attn.o_proj": (WIDTH, WIDTH),
            "mlp.gate_proj": (INNER, WIDTH), "mlp.up_proj": (INNER, WIDTH), "mlp.down_proj": (WIDTH, INNER)}.items()}
    random = numpy.random.default_rng(seed)
    write_weights(folder / "model.safetensors", {
        name: numpy.ones(shape, "<f4") if len(shape) == 1 else random.normal(0, 0.15, shape).astype("<f4")
        for name, shape in shapes.items()})


def write_weights(path, tensors):
    header, end = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [end, end + tensor.nbytes]}
        end += tensor.nbytes
    words = json.dumps(header).encode()
    words += b" " * (-len(words) % 8)
    path.write_bytes(struct.pack("<Q", len(words)) + words + b"".join(t.tobytes() for t in tensors.values()))
