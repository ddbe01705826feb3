"""Our event files, read by the real TensorBoard.

Source: the `tensorboard` package (event_accumulator with its own record reader, which checks both
checksums of every record). Values are single precision in the file, so the tolerance is exact
equality with the value rounded to float32. Driven through build/bin/observe_driver.
"""

import math
import os
import pathlib
import struct
import subprocess

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TROUPE_BUILD_DIR", SOURCE / "build"))


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def write(folder, kind):
    subprocess.run([BUILD / "bin/observe_driver", folder, kind], check=True)


def load(folder):
    accumulator = event_accumulator.EventAccumulator(
        str(folder), size_guidance={event_accumulator.SCALARS: 0, event_accumulator.TENSORS: 0}
    )
    accumulator.Reload()
    return accumulator


def test_scalars_keep_step_time_and_value(tmp_path):
    write(tmp_path, "fresh")
    accumulator = load(tmp_path)
    assert set(accumulator.Tags()["scalars"]) == {"reward/mean", "kl/ref", "policy/loss"}
    events = accumulator.Scalars("reward/mean")
    assert [event.step for event in events] == list(range(6))
    assert [event.wall_time for event in events] == [1700000000.5 + step for step in range(6)]
    assert [event.value for event in events] == [float32(step / 7) for step in range(6)]
    assert [e.value for e in accumulator.Scalars("kl/ref")] == [
        float32(math.exp(-step)) for step in range(6)
    ]
    loss = accumulator.Scalars("policy/loss")
    assert loss[0].step == 300_000 and math.isnan(loss[0].value)


def test_resumed_run_replaces_what_came_after_the_checkpoint(tmp_path):
    write(tmp_path, "fresh")
    write(tmp_path, "resumed")
    events = load(tmp_path).Scalars("reward/mean")
    expected = {step: float32(step / 7) for step in range(4)}
    expected |= {step: float32(step / 7 + 100) for step in range(4, 10)}
    assert {event.step: event.value for event in events} == expected
    assert len(events) == len(expected)


def test_every_record_passes_the_checksums_and_a_flipped_bit_does_not(tmp_path):
    write(tmp_path, "fresh")
    (path,) = tmp_path.iterdir()
    assert len(list(RawEventFileLoader(str(path)).Load())) == 1 + 6 + 1
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    # The loader logs the failed checksum and stops in front of that record.
    assert 1 < len(list(RawEventFileLoader(str(path)).Load())) < 8
