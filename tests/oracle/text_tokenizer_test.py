"""Tokenizer against Python's `tokenizers` reading the same tokenizer.json: equal ids, byte spans, text.

Source of truth: the tokenizers package of the oracle environment (same minor version as our crate).
Not AutoTokenizer: transformers loads SmolLM2's folder as another class and loses the digit split.
Tolerance: none.
"""

import json
import os
import random
import re

import pytest
from tokenizers import (AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

from text_client import Refused, TextDriver
from text_corpus import corpus

STRINGS = corpus(420)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def byte_level():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True),
         pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(STRINGS, trainer)
    return tokenizer


def split_regex():
    """As Llama 3 and Qwen: a Split by a regular expression, NFC, BOS by the post-processor."""
    tokenizer = byte_level()
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
               r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    from tokenizers import Regex
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A <|im_end|>",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in SPECIAL[1:]])
    return tokenizer


def byte_fallback():
    """As Llama 2 and Mistral: sentencepiece-like pieces, bytes for what is left."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
         decoders.Strip(" ", 1, 0)])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=500, show_progress=False, limit_alphabet=80,
                                  special_tokens=special)
    tokenizer.train_from_iterator(STRINGS[:200], trainer)
    # The trainer marks the bytes as added tokens; in such vocabularies they are plain pieces.
    written = json.loads(tokenizer.to_str())
    written["added_tokens"] = [t for t in written["added_tokens"] if not t["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(written))


def word_piece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False)
    tokenizer.train_from_iterator(STRINGS, trainer)
    tokenizer.add_special_tokens([AddedToken("<|im_end|>", lstrip=True, rstrip=True)])
    tokenizer.add_tokens(["CamelCase"])
    return tokenizer


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=["<unk>", "<s>", "</s>"],
                                      unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(STRINGS[:150], trainer)
    return tokenizer


def real_model(_):
    folder = os.environ.get("TROUPE_TEST_MODEL", "")
    if not os.path.exists(os.path.join(folder, "tokenizer.json")):
        pytest.skip(f"LOUD SKIP: the real small model is not in '{folder}'; run ./dev demo once")
    return folder


MADE = [byte_level, split_regex, byte_fallback, word_piece, unigram]


@pytest.fixture(scope="module", params=MADE + [real_model], ids=lambda make: make.__name__)
def pair(request, tmp_path_factory):
    """A folder with tokenizer.json and Python's tokenizer of it."""
    if request.param is real_model:
        folder = real_model(None)
    else:
        folder = str(tmp_path_factory.mktemp(request.param.__name__))
        request.param().save(os.path.join(folder, "tokenizer.json"))
    reference = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    reference.no_padding()
    reference.no_truncation()
    return folder, reference


@pytest.fixture(scope="module")
def driver():
    running = TextDriver()
    yield running
    running.close()


def byte_spans(text, offsets):
    """Python counts characters; a token inside one character covers it whole there."""
    starts = [0]
    for character in text:
        starts.append(starts[-1] + len(character.encode()))
    return [(starts[begin], starts[end]) for begin, end in offsets]


def widened(text, spans):
    """Byte spans grown to whole characters."""
    starts = [0]
    for character in text:
        starts.append(starts[-1] + len(character.encode()))
    def down(at):
        return max(s for s in starts if s <= at)
    def up(at):
        return min(s for s in starts if s >= at)
    return [(down(begin), up(end)) for begin, end in spans]


def test_corpus_is_large_and_varied():
    assert len(STRINGS) >= 300 and len(set(STRINGS)) >= 0.95 * len(STRINGS)


@pytest.mark.parametrize("add_special", [False, True])
def test_ids_and_spans(pair, driver, add_special):
    folder, reference = pair
    for text in STRINGS:
        expected = reference.encode(text, add_special_tokens=add_special)
        got = driver.ask(op="encode", folder=folder, text=text, add_special=add_special)
        assert got["ids"] == expected.ids, repr(text)
        spans = [tuple(span) for span in got["offsets"]]
        assert widened(text, spans) == byte_spans(text, expected.offsets), repr(text)


@pytest.mark.parametrize("skip_special", [False, True])
def test_decoding(pair, driver, skip_special):
    folder, reference = pair
    random_source = random.Random(3)
    limit = reference.get_vocab_size() + 5  # with some ids that no token has
    sequences = [reference.encode(text).ids for text in STRINGS]
    sequences += [[random_source.randrange(limit) for _ in range(random_source.randrange(40))]
                  for _ in range(200)]
    for ids in sequences:
        expected = reference.decode(ids, skip_special_tokens=skip_special)
        got = driver.ask(op="decode", folder=folder, ids=ids, skip_special=skip_special)
        assert got == expected, ids


def test_stream_adds_up_to_decoding(pair, driver):
    folder, reference = pair
    byte_level_vocabulary = "ByteLevel" in json.dumps(json.loads(reference.to_str())["decoder"])
    sequences = [reference.encode(text, add_special_tokens=False).ids for text in STRINGS]
    if byte_level_vocabulary:  # any ids at all
        random_source = random.Random(5)
        limit = reference.get_vocab_size()
        sequences += [[random_source.randrange(limit) for _ in range(60)] for _ in range(200)]
    for ids in sequences:
        for skip_special in (False, True):
            expected = reference.decode(ids, skip_special_tokens=skip_special)
            got = driver.ask(op="stream", folder=folder, ids=ids, skip_special=skip_special)
            assert got == expected, ids


def test_vocabulary(pair, driver):
    folder, reference = pair
    got = driver.ask(op="tokens", folder=folder)
    assert got["size"] == reference.get_vocab_size(with_added_tokens=True)
    assert got["limit"] == max(reference.get_vocab(with_added_tokens=True).values()) + 1
    special = [i for i, token in reference.get_added_tokens_decoder().items() if token.special]
    assert got["special"] == sorted(special)


def test_missing_folder_is_an_error(driver, tmp_path):
    with pytest.raises(Refused) as refused:
        driver.ask(op="encode", folder=str(tmp_path), text="x")
    assert refused.value.code == "not found" and "tokenizer.json" in str(refused.value)


def test_bytes_of_tokens_join_to_the_text(pair, driver):
    """Of byte-level vocabularies; of others the single bytes, which they spell as <0xF0>."""
    folder, reference = pair
    decoder = json.dumps(json.loads(reference.to_str())["decoder"])
    whole, fallback = '"ByteLevel"' in decoder, '"ByteFallback"' in decoder
    for text in STRINGS[:150] + ["a😊é", "日本語 🙂"]:
        ids = reference.encode(text, add_special_tokens=False).ids
        own = driver.ask(op="bytes", folder=folder, ids=ids)
        if whole:
            assert b"".join(map(bytes, own)).decode() == reference.decode(ids, skip_special_tokens=False), text
        for token, mine in zip(ids, own):
            piece = reference.id_to_token(token)
            if fallback and re.fullmatch("<0x[0-9A-F]{2}>", piece):
                assert mine == [int(piece[3:5], 16)], piece
    assert driver.ask(op="bytes", folder=folder, ids=[10 ** 8, -1]) == [None, None]
