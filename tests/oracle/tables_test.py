"""`troupe data preview --json` beside pyarrow and `datasets`: shapes of Parquet and Arrow files that pyarrow writes give
the rows that pyarrow reads back, with null members left out; damaged files are named, within bounded memory.
"""

import datetime
import decimal
import gzip
import json
import os
import pathlib
import random
import subprocess
import sys

import byte_model
import numpy
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.ipc as ipc
import pyarrow.parquet as parquet
import pytest

BUILD = pathlib.Path(os.environ.get("TROUPE_BUILD_DIR", pathlib.Path(__file__).parents[2] / "build"))
TROUPE = os.environ.get("TROUPE_BINARY", str(BUILD / "troupe"))
MEMORY_MAX = 256 << 20  # bytes that the program may take for a damaged file


class Spelled(float):
    """A number with a fraction, which keeps how it was written."""

    def __new__(cls, text):
        made = super().__new__(cls, text)
        made.text = text
        return made


# A small process starts the program: its most memory counts that of the process that it was copied from.
START = """import os, resource, subprocess, sys
status = subprocess.run(sys.argv[2:]).returncode
os.write(int(sys.argv[1]), str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss).encode())
sys.exit(status)"""


def run(*words):
    """Exit status, output, errors and the most memory of a command."""
    ours, theirs = os.pipe()
    done = subprocess.run([sys.executable, "-IS", "-c", START, str(theirs), TROUPE, *map(str, words)], capture_output=True, encoding="utf-8",
                          pass_fds=[theirs])
    os.close(theirs)
    with os.fdopen(ours) as said:
        return done.returncode, done.stdout, done.stderr, int(said.read()) << 10


def preview(path):
    status, out, err, _ = run("data", "preview", path, "--json", "--rows", 0)
    assert status == 0, err
    return [json.loads(line, parse_float=Spelled) for line in out.splitlines()]


# --- what pyarrow reads, as JSON should have it ---


def fraction(text):
    """No fraction, or 3, 6 or 9 digits, whichever are enough."""
    head, _, digits = text.partition(".")
    digits = digits.rstrip("0")
    return head if not digits else head + "." + digits.ljust((len(digits) + 2) // 3 * 3, "0")


def moment(value, unit):
    return fraction(str(numpy.datetime64(value, unit)))


def plain(scalar):
    """The JSON value of a scalar of pyarrow; numbers with a fraction as their spelling or as floats."""
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain(pa.scalar(scalar.as_py(), kind.value_type))
    if pa.types.is_struct(kind):
        pairs = [(kind.field(i).name, plain(scalar[i])) for i in range(kind.num_fields)]
        return {name: value for name, value in pairs if value is not None}
    if pa.types.is_map(kind):
        entries = scalar.values
        return {key if isinstance(key := plain(one[0]), str) else json.dumps(key): plain(one[1]) for one in entries}
    if isinstance(scalar, pa.ListScalar) or pa.types.is_list_view(kind):
        return [plain(one) for one in scalar.values]
    if pa.types.is_decimal(kind):
        return format(scalar.as_py(), "f")
    if pa.types.is_floating(kind):
        return numpy.dtype(kind.to_pandas_dtype()).type(scalar.as_py())
    if pa.types.is_timestamp(kind):
        return moment(scalar.value, kind.unit) + ("Z" if kind.tz else "")
    if pa.types.is_date(kind):
        return scalar.as_py().isoformat()
    if pa.types.is_time(kind):
        return moment(scalar.value, kind.unit).split("T")[1]
    if pa.types.is_duration(kind):
        per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        whole, rest = divmod(abs(scalar.value), per)
        text = fraction(f"{whole}.{rest * 10**9 // per:09d}")
        return ("-" if scalar.value < 0 else "") + f"PT{text}S"
    value = scalar.as_py()
    return value.decode() if isinstance(value, bytes) else value


def rows_of(table):
    columns = [table.column(i).combine_chunks() for i in range(table.num_columns)]
    rows = []
    for i in range(table.num_rows):
        values = [(name, plain(column[i])) for name, column in zip(table.column_names, columns)]
        rows.append({name: value for name, value in values if value is not None})
    return rows


def same(ours, theirs):
    if isinstance(theirs, dict):
        return (isinstance(ours, dict) and list(ours) == list(theirs)
                and all(same(ours[name], theirs[name]) for name in theirs))
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, numpy.floating):
        return isinstance(ours, Spelled) and type(theirs)(ours.text) == theirs
    if isinstance(theirs, str) and not isinstance(ours, str):  # a decimal
        return (ours.text if isinstance(ours, Spelled) else str(ours)) == theirs
    return type(ours) is type(theirs) and ours == theirs


# --- shapes ---

DAY = datetime.date(2024, 2, 29)
TEXTS = ["", "plain", 'quotes " and \\ and \n\t\r\b\x00\x1f', "snowman \u2603 \U0001f40d", None, "x" * 5000]


def table(**columns):
    return pa.table(columns)


def column(values, kind=None):
    return pa.table({"n": list(range(len(values))), "c": pa.array(values, kind)})


CHATS = [
    [{"role": "user", "content": "2+3?", "tool_calls": None, "name": None},
     {"role": "assistant", "content": None, "name": None,
      "tool_calls": [{"type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}]}],
    [{"role": "user", "content": "hi", "tool_calls": None, "name": "ann"}],
    None,
    [],
]
NUMBERS = list(range(3000))
WORDS = [f"word {i % 7}" for i in range(3000)]

TYPES = {
    "bool": column([True, None, False]),
    **{f"int{bits}": column([-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, None, 0], f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": column([0, 2**bits - 1, None], f"uint{bits}") for bits in (8, 16, 32, 64)},
    "float16": column(numpy.array([0.1, -2, 65504], numpy.float16)),
    "float32": column([0.1, -1e-30, 3.4028235e38, 1.0, None, -0.0], pa.float32()),
    "float64": column([0.1, 1 / 3, 5e-324, 1.7976931348623157e308, 1e16, 123456789.0, None, -0.0]),
    "decimal32": column([decimal.Decimal("1.50"), None, decimal.Decimal("-0.05")], pa.decimal32(7, 2)),
    "decimal64": column([decimal.Decimal("1.50"), None, decimal.Decimal("-0.05")], pa.decimal64(15, 2)),
    "decimal128": column([decimal.Decimal("12345678901234567890.10"), None, decimal.Decimal("0.00")], pa.decimal128(38, 2)),
    "decimal256": column([decimal.Decimal("9" * 60), decimal.Decimal(-7)], pa.decimal256(76, 0)),
    "date32": column([DAY, None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)], pa.date32()),
    "date64": column([DAY, None, datetime.date(1969, 12, 31)], pa.date64()),
    "time32": column([0, 86_399, None], pa.time32("s")),
    "time32_ms": column([1, 86_399_999, None], pa.time32("ms")),
    "time64_us": column([1, 86_399_999_999, None], pa.time64("us")),
    "time64_ns": column([1, 86_399_999_999_999, 1_000_000_000], pa.time64("ns")),
    **{f"timestamp_{unit}": column([0, 1_700_000_000, -1, None], pa.timestamp(unit)) for unit in ("ms", "us", "ns")},
    "timestamp_utc": column([0, 1_700_000_000_123_456, -1], pa.timestamp("us", "UTC")),
    "timestamp_zone": column([0, 1_700_000_000_123, None], pa.timestamp("ms", "Europe/Berlin")),
    **{f"duration_{unit}": column([0, 1500, -1, None], pa.duration(unit)) for unit in ("s", "ms", "us", "ns")},
    "text": column(TEXTS),
    "large_text": column(TEXTS, pa.large_string()),
    "text_view": column(TEXTS, pa.string_view()),
    "binary": column([b"abc", "\u2603".encode(), b"", None]),
    "large_binary": column([b"abc", None], pa.large_binary()),
    "fixed_binary": column([b"abcd", None], pa.binary(4)),
    "null": column([None, None]),
    "dictionary": pa.table({"c": pa.array(["u", "v", None, "u"]).dictionary_encode()}),
    "no_rows": column([], pa.int32()),
    "wide": table(**{f"c{i}": [i, None, -i] for i in range(300)}),
    "odd_names": pa.table({'a "b"': [1], "\u2603": [2], "a.b": [3], "": [4]}),
}
NESTED = {
    "list": column([[1, None, 2], [], None, [3]]),
    "large_list": column([["a"], None, []], pa.large_list(pa.string())),
    "fixed_list": column([[1, 2], None, [3, None]], pa.list_(pa.int8(), 2)),
    "list_of_lists": column([[[1], [], None], None, [[2, 3]]]),
    "struct": column([{"a": 1, "b": None}, None, {"a": None, "b": "x"}]),
    "empty_struct_members": column([{"a": None}, {"a": None}], pa.struct([("a", pa.string())])),
    "struct_in_struct": column([{"a": {"b": {"c": 1}}}, {"a": {"b": None}}, {"a": None}]),
    "deep": column([eval("[" * 20 + "1" + "]" * 20)]),
    "map": column([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int32())),
    "map_of_integers": column([[(1, "x"), (-2, "y")]], pa.map_(pa.int64(), pa.string())),
    "map_of_structs": column([[("a", {"x": None, "y": 2})]], pa.map_(pa.string(), pa.struct([("x", pa.int8()), ("y", pa.int8())]))),
    "list_of_dates": column([[DAY, None]], pa.list_(pa.date32())),
    "chats": pa.table({"messages": CHATS, "n": [1, 2, 3, None]}),
    "many_lists": pa.table({"c": [[i] * (i % 5) for i in range(5000)]}),
}
ENCODINGS = {
    name: (pa.table({"i": pa.array(NUMBERS, kind), "w": WORDS, "f": [i / 3 for i in NUMBERS]}), options)
    for name, kind, options in [
        ("plain", "int64", {"use_dictionary": False}),
        ("dictionary_pages", "int32", {"use_dictionary": True}),
        ("dictionary_too_large", "int64", {"use_dictionary": True, "dictionary_pagesize_limit": 64}),
        ("delta_packed", "int32", {"use_dictionary": False, "column_encoding": {"i": "DELTA_BINARY_PACKED"}}),
        ("delta_lengths", "int64", {"use_dictionary": False, "column_encoding": {"w": "DELTA_LENGTH_BYTE_ARRAY"}}),
        ("delta_texts", "int64", {"use_dictionary": False, "column_encoding": {"w": "DELTA_BYTE_ARRAY"}}),
        ("byte_streams", "int64", {"use_dictionary": False, "column_encoding": {"f": "BYTE_STREAM_SPLIT"}}),
        ("second_pages", "int64", {"data_page_version": "2.0"}),
        ("second_pages_zstd", "int64", {"data_page_version": "2.0", "compression": "zstd"}),
        ("small_pages", "int64", {"data_page_size": 100, "write_batch_size": 10}),
        ("checksums", "int64", {"write_page_checksum": True}),
        ("page_index", "int64", {"write_page_index": True}),
        ("old_format", "int64", {"version": "1.0"}),
        ("no_schema", "int64", {"store_schema": False}),
        ("groups_of_one", "int64", {"row_group_size": 1}),
        ("groups_of_seven", "int64", {"row_group_size": 7}),
        *[(f"packed_{one}", "int64", {"compression": one}) for one in ("none", "snappy", "gzip", "zstd", "brotli", "lz4")],
    ]
}
SHAPES = ({name: (one, {}) for name, one in {**TYPES, **NESTED}.items()} | ENCODINGS)


def test_there_are_sixty_shapes():
    assert len(SHAPES) >= 60


@pytest.mark.parametrize("name", SHAPES)
def test_a_parquet_file_is_what_pyarrow_reads(name, tmp_path):
    written, options = SHAPES[name]
    parquet.write_table(written, tmp_path / "a.parquet", **options)
    ours, theirs = preview(tmp_path / "a.parquet"), rows_of(parquet.read_table(tmp_path / "a.parquet"))
    assert len(theirs) == written.num_rows
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs):
        assert same(mine, other), (mine, other)


ONLY_ARROW = {
    "run_ends": pa.table({"c": pa.RunEndEncodedArray.from_arrays([2, 5], ["a", None])}),
    "list_view": pa.table({"c": pa.array([[1, 2], None, []], pa.list_view(pa.int32()))}),
    "dictionary_of_8": pa.table({"c": pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int8()), ["a", "b"])}),
}
ARROW = {name: SHAPES[name][0] for name in ("text", "text_view", "chats", "map", "decimal256", "wide", "dictionary", "float16",
                                            "fixed_list", "no_rows", "many_lists")} | ONLY_ARROW


@pytest.mark.parametrize("packed", ["uncompressed", "lz4", "zstd"])
@pytest.mark.parametrize("name", ARROW)
def test_arrow_files_and_streams_are_what_pyarrow_reads(name, packed, tmp_path):
    theirs = rows_of(ARROW[name])
    feather.write_feather(ARROW[name], str(tmp_path / "a.feather"), compression=packed, chunksize=2)
    options = ipc.IpcWriteOptions(compression=None if packed == "uncompressed" else packed)
    with ipc.new_stream(str(tmp_path / "a.arrow"), ARROW[name].schema, options=options) as stream:
        stream.write_table(ARROW[name], max_chunksize=1000)
    for file in ("a.feather", "a.arrow"):
        ours = preview(tmp_path / file)
        assert len(ours) == len(theirs)
        assert all(map(same, ours, theirs)), (file, ours, theirs)


def without_nulls(value):
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", ["chats", "text", "list", "struct_in_struct", "int64", "bool", "packed_zstd"])
def test_the_rows_are_those_of_datasets_as_json_lines(name, tmp_path):
    datasets = pytest.importorskip("datasets")
    written, options = SHAPES[name]
    parquet.write_table(written, tmp_path / "a.parquet", **options)
    loaded = datasets.Dataset.from_parquet(str(tmp_path / "a.parquet"), cache_dir=str(tmp_path / "cache"))
    loaded.to_json(str(tmp_path / "theirs.jsonl"))
    theirs = [without_nulls(json.loads(line)) for line in (tmp_path / "theirs.jsonl").read_text().splitlines()]
    ours = preview(tmp_path / "a.parquet")
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs):
        assert mine.keys() == other.keys()
        for key in other:  # `datasets` rounds numbers with a fraction to ten digits
            close = isinstance(other[key], float) and abs(mine[key] - other[key]) < 1e-9
            assert close or mine[key] == other[key]


def test_many_rows_in_one_group_and_in_many(tmp_path):
    rows = 200_000
    written = pa.table({"i": range(rows), "s": pa.array(["ab", None] * (rows // 2))})
    for size in (rows, 999):
        parquet.write_table(written, tmp_path / "a.parquet", row_group_size=size)
        ours = preview(tmp_path / "a.parquet")
        assert ours == [{"i": i, "s": "ab"} if i % 2 == 0 else {"i": i} for i in range(rows)]


def test_lines_lists_csv_and_compressed_files(tmp_path):
    rows = [{"a": 1, "b": "x,\"y\""}, {"a": 2.50, "b": "z\n"}]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "a.jsonl").write_text(lines)
    (tmp_path / "a.json").write_text(json.dumps(rows))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(json.dumps(rows).encode()))
    with pa.CompressedOutputStream(str(tmp_path / "a.jsonl.zst"), "zstd") as out:
        out.write(lines.encode())
    for file in ("a.jsonl", "a.json", "a.jsonl.gz", "a.json.gz", "a.jsonl.zst"):
        assert preview(tmp_path / file) == rows, file


# --- a template sees what is absent as undefined ---

TEMPLATE = ("{% for m in messages %}{{ m.role }}:{{ 'calls' if m.tool_calls is defined else 'none' }}"
            "{% if m.content is defined %}:{{ m.content }}{% endif %}<|end|>{% endfor %}")


def model(folder):
    folder.mkdir()
    byte_model.byte_tokenizer(folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    (folder / "config.json").write_text(json.dumps(
        {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 257, "hidden_size": 64,
         "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "eos_token_id": 256}))
    return folder


def test_a_template_that_asks_for_calls_reads_both_files_alike(tmp_path):
    chats = [CHATS[0], [{"role": "user", "content": "a", "tool_calls": None, "name": None},
                        {"role": "assistant", "content": "b", "tool_calls": None, "name": None}]]
    parquet.write_table(pa.table({"messages": chats}), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(without_nulls({"messages": one})) + "\n" for one in chats))
    folder, seen = model(tmp_path / "model"), []
    for file in ("a.parquet", "a.jsonl"):
        status, out, err, _ = run("data", "preview", "sft", "--json", "--actor.model_name_or_path", folder,
                                  "--data.dataset", tmp_path / file)
        assert status == 0, err
        seen.append([json.loads(line) for line in out.splitlines()])
    for mine, other in zip(*seen, strict=True):
        assert {**mine, "where": ""} == {**other, "where": ""}
    assert seen[0][0]["text"] == "user:none:2+3?<|end|>assistant:calls<|end|>"
    assert seen[0][1]["text"] == "user:none:a<|end|>assistant:none:b<|end|>"
    assert seen[0][0]["where"].endswith("a.parquet:1")


# --- damaged files ---


def varint(value):
    value = value << 1 if value >= 0 else (-value << 1) - 1
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def damaged():
    """(name, bytes, whether it must be refused), of whole files."""
    random.seed(7)
    rows = 12_345
    written = pa.table({"i": range(rows), "s": [f"text {i % 50}" for i in range(rows)], "l": [[i] for i in range(rows)]})
    sink = pa.BufferOutputStream()
    parquet.write_table(written, sink, compression="zstd")
    whole = sink.getvalue().to_pybytes()
    sink = pa.BufferOutputStream()
    feather.write_feather(written, sink, compression="lz4")
    arrow = sink.getvalue().to_pybytes()
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, written.schema) as stream:
        stream.write_table(written)
    streamed = sink.getvalue().to_pybytes()
    packed = gzip.compress(b'{"a": 1}\n' * 100_000)
    for ending, one in (("parquet", whole), ("feather", arrow), ("arrow", streamed), ("jsonl.gz", packed)):
        for part in (0.2, 0.6, 0.97):
            yield f"cut_{part}.{ending}", one[:int(len(one) * part)], True
    # A footer that lies about the rows, of the file, of its group and of its columns.
    begin = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    old, at = varint(rows), begin
    for lie in (varint(8192), varint(rows + 1), varint(-100_000)):
        at = begin - 1
        while (at := whole.find(old, at + 1)) >= 0:
            # The number of values of a column may be larger than it is without harm.
            yield f"lie_{at}_{lie.hex()}.parquet", whole[:at] + lie + whole[at + len(old):], None
    for size in (0, 1, 2**31 - 1, 2**32 - 1, len(whole)):
        yield f"footer_of_{size}.parquet", whole[:-8] + size.to_bytes(4, "little") + b"PAR1", True
    # The longest list that the compact protocol has, in place of the schema's.
    schema = whole.index(b"\x19", begin)
    yield "list.parquet", whole[:schema + 1] + b"\xfc\xff\xff\xff\xff\x07" + whole[schema + 7:], True
    yield "encrypted.parquet", whole[:-4] + b"PARE", True
    size = int.from_bytes(arrow[-10:-6], "little")
    yield "footer.feather", arrow[:-10] + (size * 2**14).to_bytes(4, "little") + b"ARROW1", True
    yield "header.arrow", streamed[:4] + b"\xff\xff\xff\x7f" + streamed[8:], True
    for i in range(40):
        one, ending = random.choice([(whole, "parquet"), (arrow, "feather"), (streamed, "arrow"), (packed, "jsonl.gz")])
        at = random.randrange(8, len(one))
        if i % 2 and ending == "parquet":
            at = random.randrange(begin, len(one))
        yield f"flip_{i}.{ending}", one[:at] + bytes([one[at] ^ 1 << random.randrange(8)]) + one[at + 1:], None


DAMAGED = list(damaged())


def test_damaged_files_are_named_within_bounded_memory(tmp_path):
    refused = 0
    for name, content, must in DAMAGED:
        path = tmp_path / name
        path.write_bytes(content)
        status, _, err, memory = run("data", "preview", path, "--json", "--rows", 0)
        assert status in (0, 3, 4), (name, status, err)
        assert status != 0 or not must, name
        assert memory < MEMORY_MAX, (name, memory >> 20)
        if status != 0:
            refused += 1
            assert str(path) in err and "error:" in err and "the library failed" not in err, (name, err)
    assert refused >= 30


def test_values_without_a_place_in_json_are_named(tmp_path):
    cases = {
        "nan": (column([1.0, float("nan")]), ":2: column 'c': NaN has no place in JSON"),
        "inf": (column([[float("-inf")]]), ":1: column 'c': -Infinity has no place in JSON"),
        "bytes": (column([b"ok", b"\xff\xfe"]), ":2: column 'c': bytes that are no UTF-8 text"),
        "inner": (column([{"image": {"bytes": b"\xff"}}]), ":1: column 'c.image.bytes': bytes that are no UTF-8 text"),
        "map": (column([[(1.5, 1)]], pa.map_(pa.float64(), pa.int8())), ": column 'c': a map whose keys are"),
    }
    for name, (written, told) in cases.items():
        parquet.write_table(written, tmp_path / f"{name}.parquet")
        status, _, err, _ = run("data", "preview", tmp_path / f"{name}.parquet", "--json", "--rows", 0)
        assert status == 4, err
        assert f"{tmp_path}/{name}.parquet{told}" in err, err


# --- data check ---


def test_check_counts_what_speaks_against_training(tmp_path):
    rows = [{"prompt": "2+3=", "chosen": "5 is it", "rejected": "6"}] * 2 + [
        {"prompt": "2+4=", "chosen": "6", "rejected": "6"}, {"prompt": "2+4=", "chosen": "6"},
        {"prompt": "1+1=", "chosen": "2" * 100, "rejected": "3"}]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    parquet.write_table(pa.Table.from_pylist(rows[:1]), tmp_path / "held_out.parquet")
    status, out, err, _ = run(
        "data", "check", "dpo", "--json", "--actor.model_name_or_path", model(tmp_path / "model"), "--data.dataset",
        tmp_path / "train.parquet", "--eval.dataset", tmp_path / "held_out.parquet", "--data.max_len", 50)
    report = json.loads(out)
    assert status == 4 and "2 of 6 rows are refused" in err
    assert report["rows"] == 3 and report["repeated_rows"] == 1 and report["chosen_longer"] == 3
    # Each byte is a token, and each answer ends with one more.
    assert report["tokens"]["chosen"] == {"min": 8, "p50": 8, "p90": 101, "p99": 101, "max": 101, "sum": 117}
    assert report["tokens"]["row"]["max"] == 4 + 101
    assert report["too_long"] == {"limit": 50, "rows": 1, "tokens_over": 55}
    causes = {one["cause"]: one["first"] for one in report["refused"]}
    assert causes == {
        "'chosen' and 'rejected' are equal: there is nothing to prefer": [f"{tmp_path}/train.parquet:3"],
        "no column 'rejected'": [f"{tmp_path}/train.parquet:4"]}
    assert report["held_out"]["prompts_of_training"] == 1
    for told in ("only 3 rows", "1 rows repeat another row", "1 rows are longer than 50 tokens, by 55 in all"):
        assert any(told in warning for warning in report["warnings"]), report["warnings"]
