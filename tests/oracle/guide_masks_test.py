"""The masks of libtroupe_guide.so beside those of llguidance's own Python package, of the same version: at every
state of random walks through grammars, over a vocabulary of tokens of several bytes.
"""

import ctypes
import json
import os
import pathlib
import random

import numpy
import pytest
from llguidance import LLMatcher, LLTokenizer
from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

BUILD = pathlib.Path(os.environ.get("TROUPE_BUILD_DIR", pathlib.Path(__file__).parents[2] / "build"))
LIBRARY = os.environ.get("TROUPE_GUIDE_LIBRARY", str(BUILD / "libtroupe_guide.so"))
LARK = 2


class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]


class Limits(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "grammar_symbols", "compile_fuel", "mask_fuel", "mask_items", "row_items", "lexer_states")]


def call(*arguments):
    return ctypes.CFUNCTYPE(ctypes.c_int, *arguments)


P = ctypes.c_void_p


class Table(ctypes.Structure):
    _fields_ = [("abi", ctypes.c_uint32), ("vocabulary_new", call(Text, ctypes.c_uint32, P, P, P)),
                ("vocabulary_free", call(P)), ("matcher_new", call(P, ctypes.c_int, Text, Text, P, P)),
                ("matcher_clone", call(P, P, P)), ("matcher_free", call(P)),
                ("matcher_mask", call(P, P, ctypes.c_size_t, P, P)),
                ("matcher_take", call(P, ctypes.c_uint32, P)), ("string_free", call(P))]


def text(of):
    data = of.encode()
    return Text(data, len(data))


class Ours:
    def __init__(self, table, vocabulary, size, lark):
        self.table, self.size, self.matcher = table, size, ctypes.c_void_p()
        error = Text()
        status = table.matcher_new(vocabulary, LARK, text(lark), text(""), ctypes.byref(self.matcher),
                                   ctypes.byref(error))
        assert status == 0, error.data

    def mask(self):
        words = numpy.zeros((self.size + 31) // 32, numpy.uint32)
        may_end, error = ctypes.c_int32(), Text()
        assert self.table.matcher_mask(self.matcher, words.ctypes.data, words.size, ctypes.byref(may_end),
                                       ctypes.byref(error)) == 0, error.data
        return bits(words, self.size), bool(may_end.value)

    def take(self, token):
        error = Text()
        assert self.table.matcher_take(self.matcher, token, ctypes.byref(error)) == 0, error.data


def bits(words, size):
    return numpy.unpackbits(words.view(numpy.uint8), bitorder="little")[:size].astype(bool)


@pytest.fixture(scope="module")
def tokenizer_json():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    corpus = [json.dumps({"name": f"n{i}", "value": i * 37, "tags": ["red", "green"], "nested": {"true": True}})
              for i in range(300)] + ["the cat sat on the mat, \u00e9t\u00e9 \u4e2d\u6587"] * 20
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=["<|end|>", "<|tool|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer.to_str()


SCHEMA = {"type": "object", "properties": {
    "name": {"type": "string", "maxLength": 20}, "value": {"type": "integer"}, "ratio": {"type": "number"},
    "tags": {"type": "array", "items": {"enum": ["red", "green", "\u4e2d"]}, "minItems": 1},
    "nested": {"$ref": "#/$defs/node"}}, "required": ["name", "value"], "additionalProperties": False,
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "leaf": {"type": "boolean"}},
                       "additionalProperties": False}}}
GRAMMARS = [f"start: %json {json.dumps(SCHEMA)}", r"start: /(the|cat|[a-f]{2,9}) \d+\.\d{1,3}/",
            'start: "(" start ")" | /[a-z ]{1,6}/ | start "," start', r"start: /[^\x00-\x1f]{3,40}/ <|tool|> /x+/",
            'start: (item "\\n"){2,5}\nitem: "{\\"name\\": " /"[a-z]*"/ "}"']


def test_masks_are_those_of_the_python_package(tokenizer_json):
    table = Table.in_dll(ctypes.CDLL(LIBRARY), "troupe_guide_entry")
    assert table.abi == 1
    size, end = 704, 0  # four ids without a token
    limits = Limits(10**6, 10**6, 10**6, 10**6, 2000, 10**5)
    vocabulary, error = ctypes.c_void_p(), Text()
    assert table.vocabulary_new(text(tokenizer_json), size, ctypes.byref(limits), ctypes.byref(vocabulary),
                                ctypes.byref(error)) == 0, error.data
    theirs = LLTokenizer(tokenizer_json, n_vocab=size, eos_token=end)
    rng, states, partly = random.Random(3), 0, 0
    for grammar in GRAMMARS:
        lark = '%llguidance {"no_forcing": true}\n' + grammar
        for _ in range(12):
            ours, other = Ours(table, vocabulary, size, lark), LLMatcher(theirs, LLMatcher.grammar_from_lark(lark))
            assert not other.is_error(), other.get_error()
            for _ in range(60):
                mask, may_end = ours.mask()
                expected = allocate_token_bitmask(1, size)
                fill_next_token_bitmask(other, expected)
                expected = bits(expected[0], size)
                assert may_end == expected[end]
                expected[end] = False
                assert (mask == expected).all(), (grammar, numpy.nonzero(mask != expected))
                states, partly = states + 1, partly + bool(mask.any() and not mask[2:].all())
                allowed = numpy.nonzero(mask)[0]
                if not len(allowed) or (may_end and rng.random() < 0.1):
                    break
                token = int(rng.choice(allowed))
                ours.take(token)
                assert other.consume_token(token)
            table.matcher_free(ours.matcher)
    table.vocabulary_free(vocabulary)
    assert states > 1000 and partly > 500
