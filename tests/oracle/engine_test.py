"""The engine against transformers.

Sources: `transformers` (each family's *ForCausalLM in float32 on the CPU; the logits
processors TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper, MinPLogitsWarper in the
order of `GenerationMixin`; RepetitionPenaltyLogitsProcessor and SequenceBiasLogitsProcessor; presence
and frequency by OpenAI's formula, which transformers does not have). The engine is driven through build/bin/engine_driver.

Tolerances: greedy tokens identical over 100 tokens; log-probs of sampled tokens within 1e-4 of
teacher forcing; kept sets equal on rows where no cumulative mass lies within 1e-6 of a limit; kept
mass within 1e-5, and one token at the edge of the set where it is found from our own logits.
"""

import json
import os
import pathlib
import subprocess

import pytest
import torch
from transformers import AutoModelForCausalLM
from transformers.generation.logits_process import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TROUPE_BUILD_DIR", SOURCE / "build"))
SMALL_MODEL = pathlib.Path(
    os.environ.get(
        "TROUPE_TEST_MODEL", pathlib.Path.home() / ".cache/troupe/models/SmolLM2-135M-Instruct"
    )
)
LOGPROB_TOLERANCE = 1e-4

TINY = {
    "llama": {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 60,
        "intermediate_size": 100,
        "num_hidden_layers": 3,
        "num_attention_heads": 3,
        "num_key_value_heads": 1,
        "head_dim": 20,
        "vocab_size": 1257,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
        "eos_token_id": 2,
        "torch_dtype": "float32",
    },
    "qwen2": {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 700,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "tie_word_embeddings": True,
        "hidden_act": "silu",
        "eos_token_id": 2,
        "torch_dtype": "float32",
    },
}

# The other families, on what they share; windows shorter than prompt and response.
COMMON = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 700,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
    "eos_token_id": 2,
    "sliding_window": 24,
    "torch_dtype": "float32",
}
GEMMA = {"hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 20,
         "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
FAMILIES = {
    "mistral": ("MistralForCausalLM", {"head_dim": 20}),
    "qwen3": ("Qwen3ForCausalLM", {"use_sliding_window": True, "max_window_layers": 1}),
    "phi3": ("Phi3ForCausalLM", {"pad_token_id": 0, "rope_parameters": {
        "rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}}),
    "gemma2": ("Gemma2ForCausalLM", {**GEMMA, "attn_logit_softcapping": 2.0,
                                     "final_logit_softcapping": 5.0}),
    "gemma3_text": ("Gemma3ForCausalLM", {**GEMMA, "rope_theta": 1000000.0,
                                          "rope_local_base_freq": 10000.0}),
}
# Experts: weights of the chosen normed and not, a shared expert, a dense layer between. More experts
# than one panel of 16 columns holds.
EXPERTS = {"sliding_window": None, "num_experts": 20, "num_experts_per_tok": 4,
           "moe_intermediate_size": 40}
MIXTURES = {
    "mixtral": ("MixtralForCausalLM", {"num_local_experts": 5, "num_experts_per_tok": 2}),
    "qwen2_moe": ("Qwen2MoeForCausalLM", {
        **EXPERTS, "norm_topk_prob": False, "shared_expert_intermediate_size": 56,
        "mlp_only_layers": [1], "decoder_sparse_step": 1}),
    "qwen3_moe": ("Qwen3MoeForCausalLM", {
        **EXPERTS, "norm_topk_prob": True, "mlp_only_layers": [], "decoder_sparse_step": 1}),
}
for family, (architecture, extra) in {**FAMILIES, **MIXTURES}.items():
    TINY[family] = {"architectures": [architecture], "model_type": family, **COMMON, **extra}


# Threads that spin for each other are slow on a machine that does other work beside the tests.
torch.set_num_threads(1)


class Driver:
    def __init__(self):
        self.process = subprocess.Popen(
            [str(BUILD / "bin" / "engine_driver")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        assert "error" not in reply, reply
        return reply["ok"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)


@pytest.fixture(scope="module")
def driver():
    one = Driver()
    yield one
    one.close()


def open_reference(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


@pytest.fixture(scope="module", params=[*TINY, "smollm2"])
def model(request, driver, tmp_path_factory):
    if request.param == "smollm2":
        folder = SMALL_MODEL
        if not (folder / "config.json").exists():
            pytest.skip(f"NO SMALL MODEL: {folder} is missing; `./dev setup` fetches it")
    else:
        folder = tmp_path_factory.mktemp(request.param) / "model"
        driver.ask(
            op="random_model", folder=str(folder), config=TINY[request.param], seed=5, std=0.18
        )
    limits = {"sequences_max": 16, "step_tokens_max": 48, "kv_blocks": 200}
    driver.ask(op="load", folder=str(folder), threads=2, **limits)
    return open_reference(folder)


def is_large(model):
    return model.config.num_hidden_layers > 8


def prompts(model, count):
    generator = torch.Generator().manual_seed(11)
    vocab = model.config.vocab_size
    return [
        torch.randint(3, vocab, (5 + 9 * i,), generator=generator).tolist() for i in range(count)
    ]


@torch.no_grad()
def teacher_logits(model, prompt, tokens):
    """Logits that predict each of `tokens` after `prompt`, in float32."""
    ids = torch.tensor([prompt + tokens])
    return model(ids).logits[0, len(prompt) - 1 : -1].float()


def generate(driver, requests):
    samples = driver.ask(op="generate", requests=requests)["samples"]
    return {(sample["group"], sample["index"]): sample for sample in samples}


def test_logits_are_spread_enough_to_tell(model):
    logits = teacher_logits(model, prompts(model, 1)[0], [3, 4])
    assert logits.std() >= 1.0


def test_greedy_tokens_are_the_same_for_100_tokens(driver, model):
    some = prompts(model, 1 if is_large(model) else 3)
    sampling = {"temperature": 0.0, "max_new_tokens": 100, "ignore_eos": True}
    samples = generate(
        driver, [{"id": i, "prompt": prompt, "sampling": sampling} for i, prompt in enumerate(some)]
    )
    for i, prompt in enumerate(some):
        with torch.no_grad():
            expected = model.generate(
                torch.tensor([prompt]),
                attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                do_sample=False,
                max_new_tokens=100,
                min_new_tokens=None,
                eos_token_id=None,
                pad_token_id=0,
            )[0, len(prompt) :].tolist()
        assert samples[(i, 0)]["tokens"] == expected


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0, 1.5])
def test_logprobs_equal_teacher_forcing(driver, model, temperature):
    some = prompts(model, 2 if is_large(model) else 3)
    most = 20 if is_large(model) else 40
    sampling = {"temperature": temperature, "max_new_tokens": most, "ignore_eos": True}
    samples = generate(
        driver,
        [
            {"id": i, "prompt": prompt, "samples": 2, "seed": 40 + i, "sampling": sampling}
            for i, prompt in enumerate(some)
        ],
    )
    worst = 0.0
    for (group, _), sample in samples.items():
        logits = teacher_logits(model, some[group], sample["tokens"])
        scaled = logits / (temperature if temperature > 0 else 1.0)
        expected = torch.log_softmax(scaled.double(), dim=-1)
        expected = expected.gather(1, torch.tensor(sample["tokens"])[:, None])[:, 0]
        difference = torch.tensor(sample["logprobs"]).double() - expected
        worst = max(worst, difference.abs().max().item())
    print(f"largest difference of a log-prob: {worst:.2e}")
    assert worst <= LOGPROB_TOLERANCE


def warpers(sampling):
    chain = LogitsProcessorList()
    chain.append(TemperatureLogitsWarper(sampling.get("temperature", 1.0)))
    if sampling.get("top_k"):
        chain.append(TopKLogitsWarper(sampling["top_k"]))
    if sampling.get("top_p", 1.0) < 1.0:
        chain.append(TopPLogitsWarper(sampling["top_p"]))
    if sampling.get("min_p"):
        chain.append(MinPLogitsWarper(sampling["min_p"]))
    return chain


CUTS = [
    {"top_k": 1},
    {"top_k": 7},
    {"top_k": 50, "temperature": 0.6},
    {"top_k": 400},
    {"top_p": 0.1},
    {"top_p": 0.5, "temperature": 1.3},
    {"top_p": 0.9},
    {"top_p": 0.999},
    {"min_p": 0.05},
    {"min_p": 0.3, "temperature": 2.0},
    {"top_k": 40, "top_p": 0.8},
    {"top_k": 40, "top_p": 0.95, "min_p": 0.02, "temperature": 0.8},
    {"top_p": 0.7, "min_p": 0.001},
]


def near_a_limit(scaled, sampling):
    """True when float32 rounding of a cumulative sum could decide about a token."""
    p = torch.softmax(scaled.double(), dim=-1).sort(descending=True).values
    k = sampling.get("top_k", 0)
    kept = p[:k] / p[:k].sum() if k else p
    near = ((kept.cumsum(0) - sampling.get("top_p", 2.0)).abs() < 1e-6).any()
    near |= ((p / p[0] - sampling.get("min_p", -1.0)).abs() < 1e-6).any()
    return bool(near)


@pytest.mark.parametrize("sampling", CUTS, ids=str)
def test_kept_sets_equal_the_warpers(driver, sampling):
    generator = torch.Generator().manual_seed(3)
    compared = 0
    for row in range(12):
        vocab = [300, 1537, 6000][row % 3]
        spread = 0.5 + row / 3
        logits = torch.randn(vocab, generator=generator) * spread
        scaled = TemperatureLogitsWarper(sampling.get("temperature", 1.0))(None, logits[None])[0]
        # Ties are for the unit tests: transformers keeps all tokens that equal the k-th.
        if near_a_limit(scaled, sampling) or len(set(logits.tolist())) < vocab:
            continue
        warped = warpers(sampling)(None, logits[None].double())[0]
        expected = torch.isfinite(warped).nonzero()[:, 0].tolist()
        mine = driver.ask(op="kept", logits=logits.tolist(), sampling=sampling)
        assert mine["ids"] == expected
        mass = torch.softmax(scaled.double(), dim=-1)[expected].sum().item()
        assert abs(mine["mass"] - mass) <= 1e-5
        compared += 1
    assert compared >= 6


@pytest.mark.parametrize("sampling", CUTS[2:13:4], ids=str)
def test_truncated_samples_stay_in_the_set(driver, model, sampling):
    prompt = prompts(model, 2)[1]
    sampling = dict(sampling, max_new_tokens=15, ignore_eos=True)
    samples = generate(
        driver, [{"id": 1, "prompt": prompt, "samples": 3, "seed": 9, "sampling": sampling}]
    )
    for sample in samples.values():
        logits = teacher_logits(model, prompt, sample["tokens"]).double()
        warped = warpers(sampling)(None, logits)
        full = torch.softmax(logits / sampling.get("temperature", 1.0), dim=-1)
        for step, token in enumerate(sample["tokens"]):
            keep = torch.isfinite(warped[step])
            # A token at the edge of the set may fall either way when the logits differ by rounding.
            edge = full[step][keep].min().item()
            assert full[step][token].item() >= edge * (1 - 1e-3)


CHANGES = [
    {"repetition_penalty": 1.3},
    {"repetition_penalty": 0.7, "temperature": 0.5},
    {"logit_bias": [[3, 2.5], [17, -4.0], [299, 0.5]]},
    {"presence_penalty": 0.8, "frequency_penalty": -0.4},
    {
        "repetition_penalty": 1.1,
        "presence_penalty": -0.5,
        "frequency_penalty": 1.7,
        "logit_bias": [[0, 1.0], [5, 3.0]],
        "temperature": 1.4,
    },
]


@pytest.mark.parametrize("sampling", CHANGES, ids=str)
def test_changed_scores_equal_the_processors(driver, sampling):
    generator = torch.Generator().manual_seed(17)
    for length in [0, 1, 40, 400]:
        logits = torch.randn(300, generator=generator) * 3
        prompt = torch.randint(0, 300, (20,), generator=generator)
        response = torch.randint(0, 300, (length,), generator=generator)
        expected = logits[None].clone()
        seen = torch.cat([prompt, response])[None]
        if "logit_bias" in sampling:
            bias = {(token,): value for token, value in sampling["logit_bias"]}
            expected = SequenceBiasLogitsProcessor(bias)(seen, expected)
        if "repetition_penalty" in sampling:
            penalty = RepetitionPenaltyLogitsProcessor(sampling["repetition_penalty"])
            expected = penalty(seen, expected)
        counts = torch.bincount(response, minlength=300)
        expected = expected - sampling.get("frequency_penalty", 0.0) * counts
        expected = expected - sampling.get("presence_penalty", 0.0) * (counts > 0)
        expected = TemperatureLogitsWarper(sampling.get("temperature", 1.0))(None, expected)[0]
        mine = driver.ask(
            op="changed",
            logits=logits.tolist(),
            sampling=sampling,
            prompt=prompt.tolist(),
            response=response.tolist(),
        )
        assert (torch.tensor(mine["scores"]) - expected).abs().max().item() <= 1e-5


def test_greedy_tokens_are_the_same_under_a_repetition_penalty(driver, model):
    prompt = prompts(model, 2)[1]
    most = 40
    samples = generate(
        driver,
        [
            {
                "id": 1,
                "prompt": prompt,
                "sampling": {
                    "temperature": 0.0,
                    "repetition_penalty": 1.3,
                    "max_new_tokens": most,
                    "ignore_eos": True,
                },
            }
        ],
    )
    with torch.no_grad():
        expected = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            do_sample=False,
            repetition_penalty=1.3,
            max_new_tokens=most,
            min_new_tokens=None,
            eos_token_id=None,
            pad_token_id=0,
        )[0, len(prompt) :].tolist()
    assert samples[(1, 0)]["tokens"] == expected


def test_reports_equal_teacher_forcing(driver, model):
    prompt = prompts(model, 1)[0]
    sampling = {
        "temperature": 0.7,
        "top_k": 20,
        "max_new_tokens": 15,
        "ignore_eos": True,
        "entropies": True,
        "raw_logprobs": True,
        "top_logprobs": 5,
    }
    sample = generate(driver, [{"id": 1, "prompt": prompt, "seed": 3, "sampling": sampling}])[1, 0]
    tokens = torch.tensor(sample["tokens"])[:, None]
    logits = teacher_logits(model, prompt, sample["tokens"]).double()
    raw = torch.log_softmax(logits, dim=-1)
    cold = torch.log_softmax(logits / 0.7, dim=-1)
    difference = torch.tensor(sample["raw_logprobs"]).double() - raw.gather(1, tokens)[:, 0]
    assert difference.abs().max().item() <= LOGPROB_TOLERANCE
    difference = torch.tensor(sample["logprobs"]).double() - cold.gather(1, tokens)[:, 0]
    assert difference.abs().max().item() <= LOGPROB_TOLERANCE
    entropy = -(cold.exp() * cold).sum(dim=-1)
    difference = torch.tensor(sample["entropies"]).double() - entropy
    assert difference.abs().max().item() <= LOGPROB_TOLERANCE
    best = raw.topk(5, dim=-1)
    ids = torch.tensor([entry[0] for entry in sample["top_logprobs"]]).reshape(-1, 5)
    values = torch.tensor([entry[1] for entry in sample["top_logprobs"]]).reshape(-1, 5).double()
    assert (values - best.values).abs().max().item() <= LOGPROB_TOLERANCE
    # Tokens whose log-probs differ by rounding alone may change places.
    assert (raw.gather(1, ids) - best.values).abs().max().item() <= LOGPROB_TOLERANCE
