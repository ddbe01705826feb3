"""The tokenizer of the tiny models: token b is byte b, token 256 the end; then come texts that are tokens as a whole.
Needs no package."""

import json

END = 256


def byte_tokenizer(folder, texts=()):
    letters, extra = {"<|end|>": END}, 0
    for byte in range(256):
        prints = 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or byte >= 0xAE
        letters[chr(byte) if prints else chr(256 + extra)] = byte
        extra += 0 if prints else 1
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    added = [{"id": END + i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": i == 0} for i, text in enumerate(["<|end|>", *texts])]
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": letters,
             "merges": []}
    (folder / "tokenizer.json").write_text(json.dumps(
        {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
         "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
         "model": model}))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>"}))
