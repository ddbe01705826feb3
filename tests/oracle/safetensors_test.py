"""Which odd files are safetensors files: the safetensors library decides.

Troupe accepts and refuses as the library does. Where it is stricter the case says so and why; it is
never looser.
"""

import os
import struct
import subprocess
from pathlib import Path

from safetensors import SafetensorError, deserialize

DRIVER = Path(os.environ["TROUPE_BUILD_DIR"]) / "bin" / "safetensors_driver"
W = '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'


def entry(dtype="F32", shape="[1]", offsets="[0,4]", more=""):
    return f'{{"w":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}{more}}}}}'


# name: (header, bytes of data)
SAME = {
    "plain": (entry(), 4),
    "an unknown field": (entry(more=',"x":1'), 4),
    "an unknown field, deep": (entry(more=',"x":[[[[{}]]]]'), 4),
    "blanks before": (" " + entry(), 4),
    "blanks behind": (entry() + " \n\t\r ", 4),
    "a NUL behind": (entry() + "\0", 4),
    "NULs as padding": (entry() + "\0" * 8, 4),
    "text behind a NUL": (entry() + "\0{", 4),
    "a second object": (entry() + "{}", 4),
    "a comment": (entry() + "//x", 4),
    "a comma too many": (f'{{"w":{W},}}', 4),
    "a byte order mark": ("\ufeff" + entry(), 4),
    "a field twice": (entry(more=',"dtype":"F32"'), 4),
    "metadata twice": (f'{{"__metadata__":{{}},"__metadata__":{{}},"w":{W}}}', 4),
    "metadata null": (f'{{"__metadata__":null,"w":{W}}}', 4),
    "metadata": (f'{{"__metadata__":{{"a":"1"}},"w":{W}}}', 4),
    "metadata with a number": (f'{{"__metadata__":{{"a":1}},"w":{W}}}', 4),
    "metadata as a list": (f'{{"__metadata__":[],"w":{W}}}', 4),
    "a shape of a fraction": (entry(shape="[1.0]"), 4),
    "a shape with an exponent": (entry(shape="[1e0]"), 4),
    "a shape below zero": (entry(shape="[-1]"), 4),
    "a shape of text": (entry(shape='["1"]'), 4),
    "a shape beyond 64 bits": (entry(shape="[18446744073709551616]"), 4),
    "a leading zero": (entry(shape="[01]"), 4),
    "no shape": ('{"w":{"dtype":"F32","data_offsets":[0,4]}}', 4),
    "a shape that is none": (entry(shape="null"), 4),
    "minus zero": (entry(offsets="[-0,4]"), 4),
    "three offsets": (entry(offsets="[0,4,4]"), 4),
    "one offset": (entry(offsets="[0]"), 4),
    "offsets backwards": (entry(offsets="[4,0]"), 4),
    "offsets that wrap": (entry("U8", "[4]", "[18446744073709551615,3]"), 4),
    "a gap": (f'{{"a":{W},"b":{W.replace("[0,4]", "[8,12]")}}}', 12),
    "a gap before": (entry(offsets="[4,8]"), 8),
    "an overlap": (f'{{"a":{W},"b":{W.replace("[0,4]", "[2,6]")}}}', 6),
    "the same bytes": (f'{{"a":{W},"b":{W}}}', 4),
    "another order": (f'{{"b":{W.replace("[0,4]", "[4,8]")},"a":{W}}}', 8),
    "data behind": (entry(), 5),
    "data cut": (entry(), 3),
    "no tensors": ("{}", 0),
    "no tensors but data": ("{}", 4),
    "no elements, at the start": (f'{{"a":{W.replace("[1]", "[0]").replace("[0,4]", "[0,0]")},"w":{W}}}', 4),
    "no elements, at the end": (f'{{"a":{W.replace("[1]", "[0]").replace("[0,4]", "[4,4]")},"w":{W}}}', 4),
    "no elements, within another": (f'{{"a":{W.replace("[1]", "[0]").replace("[0,4]", "[2,2]")},"w":{W}}}', 4),
    "no elements by way of too many": (entry(shape="[4294967296,4294967296,0]", offsets="[0,0]"), 0),
    "a scalar": (entry(shape="[]"), 4),
    "a size that is not the shape's": (entry(shape="[2]"), 4),
    "an unknown dtype": (entry("F33"), 4),
    "a dtype in small letters": (entry("f32"), 4),
    "an escaped field": (entry().replace("dtype", "d\\u0074ype"), 4),
    "half a surrogate": (f'{{"\\ud800":{W}}}', 4),
    "bytes that are no UTF-8": (b'{"\xff":' + W.encode() + b"}", 4),
    "a control character": (f'{{"a\x01":{W}}}', 4),
    "an empty name": (f'{{"":{W}}}', 4),
    "an entry null": ('{"w":null}', 0),
    "an entry 3": ('{"w":3}', 4),
    "a list": ("[]", 0),
    "nothing": ("", 0),
}
# The library takes these.
STRICTER = {
    "a tensor twice, of which it keeps one": (f'{{"w":{W},"w":{W}}}', 4),
    "a tensor twice in two spellings": (f'{{"w":{W},"\\u0077":{W}}}', 4),
    "a name of the metadata twice": (f'{{"__metadata__":{{"a":"1","a":"2"}},"w":{W}}}', 4),
    "an entry as a list of its fields": ('{"w":["F32",[1],[0,4]]}', 4),
    "more dimensions than any model has": (entry(shape="[1,1,1,1,1,1,1,1,1]"), 4),
    "a dtype of 4 bits, which no model here has": (entry("F4", "[8]"), 4),
}


def written(header, data):
    text = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(text)) + text + bytes(data)


def accepted_by_the_library(content):
    try:
        deserialize(content)
    except SafetensorError:
        return False
    return True


def test_accepts_and_refuses_as_the_library(tmp_path):
    cases = {**SAME, **STRICTER}
    paths = []
    for i, (header, data) in enumerate(cases.values()):
        paths.append(tmp_path / f"{i}.safetensors")
        paths[-1].write_bytes(written(header, data))
    said = subprocess.run([DRIVER, *paths], capture_output=True, text=True, errors="replace", check=True).stdout.split("\n")[:-1]
    assert len(said) == len(cases)
    library = {name: accepted_by_the_library(written(*case)) for name, case in cases.items()}
    ours = dict(zip(cases, said))
    differ = {name: ours[name] for name in SAME if (ours[name] == "accepted") != library[name]}
    assert differ == {}
    assert [library[name] for name in STRICTER] == [True] * len(STRICTER)
    assert [name for name in STRICTER if ours[name] == "accepted"] == []
    assert sum(library[name] for name in SAME) > 10, "both kinds must be there"
