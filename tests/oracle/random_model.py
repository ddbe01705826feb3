"""A tiny Llama with random weights, over bytes. `python random_model.py FOLDER` writes it."""

import sys
from pathlib import Path

from byte_model import byte_tokenizer


def make_model(path, seed=5, scale=None, template=None, **shape):
    """`scale`: standard deviation of the matrices; None: transformers' own. `shape`: beside taught_model.SHAPE."""
    import torch
    from taught_model import SHAPE
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    model = LlamaForCausalLM(LlamaConfig(**{**SHAPE, **shape}))
    with torch.no_grad():
        for weight in model.parameters():
            if scale is not None and weight.dim() > 1:
                weight.normal_(0, scale)
    model.save_pretrained(path)
    byte_tokenizer(path)
    if template is not None:
        (path / "chat_template.jinja").write_text(template)


if __name__ == "__main__":
    make_model(Path(sys.argv[1]), max_position_embeddings=4096)
