"""Updates of episodes of several turns, with forks, against transformers and torch.

The peer knows nothing of Troupe's code: it walks each episode as a tree, masks the loss on whole rows, and
computes returns by a recursion of its own, in float64. Tolerance: 1e-4 relative for losses and gradients.
"""

import safetensors.torch
import torch
import transformers
import pytest

from test_learn import close, drive


@pytest.fixture
def tiny(tmp_path):
    torch.manual_seed(5)
    config = transformers.LlamaConfig(
        vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=160, initializer_range=0.15, rms_norm_eps=1e-5,
        attention_bias=False, eos_token_id=2,
    )
    model = transformers.LlamaForCausalLM(config)
    model.save_pretrained(tmp_path / "model")
    return model.double().eval(), tmp_path


class Row:
    """One way through an episode: ids behind the prompt, and which of them the policy drew."""

    def __init__(self, ids=(), drawn=()):
        self.ids, self.drawn, self.rewards = list(ids), list(drawn), {}

    def turn(self, generator, context, tokens):
        draw = lambda n: torch.randint(3, 97, (n,), generator=generator).tolist()
        self.ids += draw(context) + draw(tokens)
        self.drawn += [False] * context + [True] * tokens
        self.starts = getattr(self, "starts", []) + [len(self.ids) - tokens]
        return self

    def fork(self, places):
        """Goes on behind the first `places` ids, which it keeps as they are."""
        other = Row(self.ids[:places], self.drawn[:places])
        other.starts = [s for s in self.starts if s < places]
        other.rewards = {p: r for p, r in self.rewards.items() if p < places}
        return other


def episodes_of(generator):
    """Two groups of three episodes. One forks behind its first turn, and again inside the fork's second turn."""
    groups = []
    for slot in range(2):
        episodes = []
        for e in range(3):
            trunk = Row().turn(generator, e, 4).turn(generator, 3, 5).turn(generator, 1 + slot, 2)
            # At the end of the first turn, within the second, and at its end.
            first, second = trunk.starts[0], trunk.starts[1]
            trunk.rewards = {first + 3: 0.5 * e + 0.25, second + 1: 0.75, second + 4: -0.5}
            leaves = [trunk]
            if e == 1:
                first = trunk.fork(trunk.starts[0] + 4).turn(generator, 2, 3).turn(generator, 2, 3)
                first.rewards[len(first.ids) - 1] = 1.5
                second = first.fork(first.starts[2] + 2).turn(generator, 4, 2)
                leaves += [first, second]
            episodes.append([(leaf, float(torch.randint(0, 4, (1,), generator=generator))) for leaf in leaves])
        groups.append(([3 + slot, 5, 7, 11], episodes))
    return groups


def as_samples(episodes):
    """The same for Troupe: each drawn token belongs to the first leaf that holds it at its place."""
    samples = []
    for number, leaves in enumerate(episodes, 1):
        first = len(samples)
        for i, (leaf, score) in enumerate(leaves):
            shared, of = 0, None
            for j in range(i):
                other = leaves[j][0]
                same = 0
                while (same < min(len(other.ids), len(leaf.ids)) and other.ids[same] == leaf.ids[same]
                       and other.drawn[same] == leaf.drawn[same]):
                    same += 1
                if sum(leaf.drawn[:same]) > shared:
                    shared, of = sum(leaf.drawn[:same]), first + j
            tokens, turns, context, steps, seen = [], [], [], [], 0
            for place, (token, drawn) in enumerate(zip(leaf.ids, leaf.drawn)):
                own = drawn and seen >= shared
                seen += drawn
                if not own:
                    context.append(token)
                    continue
                if context or not turns or place in leaf.starts:
                    turns.append([len(tokens), context])
                    context = []
                if place in leaf.rewards:
                    steps.append([len(tokens), leaf.rewards[place]])
                tokens.append(token)
            sample = {"tokens": tokens, "turns": turns, "score": score, "episode": number, "steps": steps}
            if of is not None:
                sample["shares"] = [of, shared]
            samples.append(sample)
    return samples


def row_logps(model, prompt, row):
    ids = torch.tensor([prompt + row.ids])
    logits = model(ids, attention_mask=torch.ones_like(ids)).logits[0, len(prompt) - 1 : -1]
    return logits.log_softmax(-1).gather(1, torch.tensor(row.ids)[:, None])[:, 0]


def turns_of(row):
    """Places of the drawn tokens of each turn; where a fork cut one short, of what is left of it."""
    ends = row.starts[1:] + [len(row.ids)]
    return [[p for p in range(a, b) if row.drawn[p]] for a, b in zip(row.starts, ends)]


def advantages_on_path(row, last, credit, gamma):
    """By place of a drawn token."""
    rewards = {} if credit == "episode" else dict(row.rewards)
    turns = turns_of(row)
    end = turns[-1][-1]
    rewards[end] = rewards.get(end, 0.0) + last
    out, to_go = {}, 0.0
    if credit == "turn":
        for turn in reversed(turns):
            to_go = sum(rewards.get(p, 0.0) for p in turn) + gamma * to_go
            out |= {p: to_go for p in turn}
        return out
    for place in reversed([p for turn in turns for p in turn]):
        to_go = rewards.get(place, 0.0) + gamma * to_go
        out[place] = to_go
    return out


def peer_loss(model, groups, estimator, credit, gamma, reducer):
    """-mean of A l over every drawn token once; a token is known by its episode and all ids up to it."""
    logps, advantages, holders = {}, {}, {}
    lengths, episodes_seen = {}, 0
    for g, (prompt, episodes) in enumerate(groups):
        worth = [[score + (sum(row.rewards.values()) if credit == "episode" else 0.0) for row, score in leaves]
                 for leaves in episodes]
        means = torch.tensor([sum(w) / len(w) for w in worth], dtype=torch.float64)
        scale = means.std() + 1e-4 if estimator == "group_norm" else 1.0
        for e, leaves in enumerate(episodes):
            episodes_seen += 1
            for (row, _), value in zip(leaves, worth[e]):
                if estimator == "rloo":
                    last = value - (means.sum() - means[e]) / (len(means) - 1)
                else:
                    last = (value - means.mean()) / scale
                on_path = advantages_on_path(row, float(last), credit, gamma)
                l = row_logps(model, prompt, row)
                for place, advantage in on_path.items():
                    token = (g, e, tuple(row.ids[: place + 1]), tuple(row.drawn[: place + 1]))
                    logps[token] = l[place]
                    advantages[token] = advantages.get(token, 0.0) + advantage
                    holders[token] = holders.get(token, 0) + 1
    for token in logps:
        lengths[token[:2]] = lengths.get(token[:2], 0) + 1
    loss = 0.0
    for token, l in logps.items():
        weight = 1 / len(logps) if reducer == "token_mean" else 1 / (episodes_seen * lengths[token[:2]])
        loss = loss - weight * advantages[token] / holders[token] * l
    return loss, len(logps)


@pytest.mark.parametrize("credit", ["token", "turn", "episode"])
@pytest.mark.parametrize("estimator, reducer", [("rloo", "token_mean"), ("group_norm", "sample_mean")])
@pytest.mark.parametrize("micro_tokens", [4096, 70])
def test_the_gradient_of_episodes_is_torchs(tiny, credit, estimator, reducer, micro_tokens):
    model, folder = tiny
    generator = torch.Generator().manual_seed(8)
    groups = episodes_of(generator)
    gamma = 1.0
    algo = {"objective": "reinforce", "advantage": estimator, "reducer": reducer, "credit": credit, "kl_coef": 0.0,
            "entropy_coef": 0.0, "temperature": 1.0, "gamma": gamma, "compares_steps": False}
    updates = []
    for slot, (prompt, episodes) in enumerate(groups):
        samples = as_samples(episodes)
        for sample in samples:
            sample["behaviour"] = [-1.0] * len(sample["tokens"])  # reinforce does not read them
        updates.append({"update": 0, "slot": slot, "prompt": prompt, "samples": samples})
    assert [len(u["samples"]) for u in updates] == [5, 5]
    result = drive({
        "op": "train", "model": str(folder / "model"), "out": str(folder / "out"), "algo": algo,
        "optim": {"lr": 1e-2, "eps": 1e-3, "weight_decay": 0.0, "grad_norm_max": 0.0, "warmup_ratio": 0.0},
        "batch": {"micro_tokens_max": micro_tokens}, "updates": [updates],
    })
    metrics = result["metrics"][0]
    assert (metrics["micro_batches"] > 1) == (micro_tokens < 100)
    loss, tokens = peer_loss(model, groups, estimator, credit, gamma, reducer)
    assert tokens == sum(len(s["tokens"]) for u in updates for s in u["samples"]), "each token is there once"
    close(metrics["policy/loss"], loss.item(), 1e-4, "loss")
    loss.backward()
    moments = safetensors.torch.load_file(folder / "out" / "adam_m.safetensors")
    for name, p in model.named_parameters():
        if name in moments:
            close(moments[name] / 0.1, p.grad, 1e-4, f"gradient of {name}")
