"""The same work with PyTorch on this machine's GPU, as JSON lines: matmul, attention, rows or models.

The figures stand next to ours: both are measured in the same command."""
import json
import sys
import time

import torch

DEVICE = "cuda"


def seconds(work, least=0.2):
    """Of one call, from events, after a warm-up."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    count, begun = 1, time.monotonic()
    while True:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(count):
            work()
        end.record()
        torch.cuda.synchronize()
        taken = start.elapsed_time(end) / 1e3
        if taken > least or time.monotonic() - begun > 5:
            return taken / count
        count *= 2


def say(**figures):
    print(json.dumps({"bench": "torch", "torch": torch.__version__, "gpu": torch.cuda.get_device_name(), **figures}),
          flush=True)


def matmul():
    for dtype in (torch.float32, torch.bfloat16):
        for n, k in ((9728, 896), (896, 4864), (28672, 4096), (4096, 14336)):
            b = torch.randn(n, k, device=DEVICE, dtype=dtype)
            for m in (1, 8, 64, 256, 2048, 8192):
                a = torch.randn(m, k, device=DEVICE, dtype=dtype)
                taken = seconds(lambda a=a, b=b: a @ b.t())
                size = torch.finfo(dtype).bits // 8
                say(what="matmul", dtype=str(dtype), m=m, n=n, k=k, us=taken * 1e6, tflops=2e-12 * m * n * k / taken,
                    gb_per_s=1e-9 * size * (m * k + n * k + m * n) / taken)


def attention():
    """Heads of 8B: 32 over 8, of 128."""
    for batch, queries, keys in ((1, 1, 1024), (1, 1, 8192), (64, 1, 1024), (256, 1, 1024), (1, 4096, 4096)):
        q = torch.randn(batch, 32, queries, 128, device=DEVICE, dtype=torch.bfloat16)
        k, v = (torch.randn(batch, 8, keys, 128, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
        taken = seconds(lambda q=q, k=k, v=v: torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=q.shape[2] > 1, enable_gqa=True))
        say(what="attention", batch=batch, queries=queries, keys=keys, us=taken * 1e6,
            gb_per_s=1e-9 * 2 * batch * 8 * keys * 128 * 2 / taken)


def rows():
    x = torch.randn(8192, 4096, device=DEVICE)
    weight = torch.randn(4096, device=DEVICE)
    taken = seconds(lambda: torch.nn.functional.rms_norm(x, (4096,), weight))
    say(what="rms_norm", rows=8192, columns=4096, us=taken * 1e6, gb_per_s=2e-9 * 4 * x.numel() / taken)
    parameter = torch.nn.Parameter(torch.randn(1 << 28, device=DEVICE))
    parameter.grad = torch.randn_like(parameter)
    adamw = torch.optim.AdamW([parameter], fused=True)
    taken = seconds(adamw.step)
    say(what="adamw", parameters=1 << 28, us=taken * 1e6, gb_per_s=28e-9 * (1 << 28) / taken)


def models():
    """Decode of a model of 0.5B and of four layers of 8B, with transformers where it is there."""
    try:
        import transformers
    except ImportError:
        say(what="models", why="transformers is not on this machine")
        return
    shapes = {"qwen2.5-0.5b": transformers.Qwen2Config(hidden_size=896, num_hidden_layers=24, num_attention_heads=14,
                                                       num_key_value_heads=2, intermediate_size=4864,
                                                       vocab_size=151936, tie_word_embeddings=True),
              "llama3-8b, 4 layers": transformers.LlamaConfig(hidden_size=4096, num_hidden_layers=4,
                                                              num_attention_heads=32, num_key_value_heads=8,
                                                              intermediate_size=14336, vocab_size=128256)}
    for name, config in shapes.items():
        with torch.device(DEVICE):
            model = transformers.AutoModelForCausalLM.from_config(config, torch_dtype=torch.bfloat16).eval()
        for batch in (1, 64):
            ids = torch.randint(0, 1000, (batch, 1024), device=DEVICE)
            with torch.no_grad():
                cache = model(ids, use_cache=True).past_key_values
                token = ids[:, :1]
                taken = seconds(lambda m=model, t=token, c=cache: m(t, past_key_values=c, use_cache=True))
            say(what="decode step", model=name, batch=batch, context=1024, us=taken * 1e6,
                tokens_per_s=batch / taken)
        del model


if __name__ == "__main__":
    {"matmul": matmul, "attention": attention, "rows": rows, "models": models}[sys.argv[1]]()
