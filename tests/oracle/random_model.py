"""A tiny Llama with random weights, over bytes. `python random_model.py FOLDER` writes it."""

import sys
from pathlib import Path

from byte_model import byte_tokenizer


def make_model(path):
    import torch
    from taught_model import SHAPE
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(5)
    LlamaForCausalLM(LlamaConfig(**{**SHAPE, "max_position_embeddings": 4096})).save_pretrained(path)
    byte_tokenizer(path)


if __name__ == "__main__":
    make_model(Path(sys.argv[1]))
