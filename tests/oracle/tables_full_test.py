"""A Parquet file of 10 GB, in row groups of a million rows, read beside pyarrow on one thread: content, order, memory and
rate; and a run that streams it, killed in the middle of the stream, goes on with the same bits.

TROUPE_TABLE_GB: another size.
"""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from random_model import make_model

BUILD = pathlib.Path(os.environ.get("TROUPE_BUILD_DIR", pathlib.Path(__file__).parents[2] / "build"))
TROUPE = os.environ.get("TROUPE_BINARY", str(BUILD / "troupe"))
BYTES = int(float(os.environ.get("TROUPE_TABLE_GB", "10")) * 1e9)
GROUP_ROWS = 1_000_000
TEXT_BYTES = 1_000
ROOM = 64 << 20  # bytes beside two row groups


def texts(group):
    """A million texts that no compression makes small, as one column."""
    letters = numpy.frombuffer(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_", dtype=numpy.uint8)
    drawn = numpy.random.default_rng(group).integers(0, 64, GROUP_ROWS * TEXT_BYTES, dtype=numpy.uint8)
    ends = numpy.arange(0, (GROUP_ROWS + 1) * TEXT_BYTES, TEXT_BYTES, dtype=numpy.int32)
    return pa.StringArray.from_buffers(GROUP_ROWS, pa.py_buffer(ends), pa.py_buffer(letters[drawn]))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    if shutil.disk_usage(folder).free < BYTES * 1.3 + 2e9:
        pytest.skip(f"no room for {BYTES / 1e9:.1f} GB in {folder}")
    schema = pa.schema([("input", pa.string()), ("output", pa.string()), ("n", pa.int64()), ("text", pa.string())])
    file, digest, rows = folder / "large.parquet", hashlib.sha256(), 0
    with parquet.ParquetWriter(file, schema, compression="snappy", use_dictionary=False, write_statistics=False) as out:
        while rows * TEXT_BYTES < BYTES:
            numbers = range(rows, rows + GROUP_ROWS)
            inputs, outputs = [f"{i % 9973}+1=" for i in numbers], [str(i % 9973 + 1) for i in numbers]
            column = texts(rows)
            out.write_table(pa.table([inputs, outputs, pa.array(numbers), column], schema=schema), row_group_size=GROUP_ROWS)
            raw = memoryview(column.buffers()[2])
            for at, i in enumerate(numbers):
                digest.update(f'{{"input":"{inputs[at]}","output":"{outputs[at]}","n":{i},"text":"'.encode())
                digest.update(raw[at * TEXT_BYTES : (at + 1) * TEXT_BYTES])
                digest.update(b'"}\n')
            rows += GROUP_ROWS
    yield file, rows, digest.hexdigest()
    shutil.rmtree(folder)


# In a small process, because the most memory of a program counts that of the process that it was copied from.
READ = """import hashlib, subprocess, sys, resource, json
digest = hashlib.sha256()
with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE) as program:
    while part := program.stdout.read(1 << 20):
        digest.update(part)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([program.returncode, digest.hexdigest(), used.ru_utime + used.ru_stime, used.ru_maxrss << 10]))"""


def test_ten_gigabytes_are_read_within_two_row_groups(large, capsys):
    file, rows, expected = large
    words = [TROUPE, "data", "preview", file, "--json", "--rows", "0"]
    done = subprocess.run([sys.executable, "-IS", "-c", READ, *map(str, words)], capture_output=True, check=True, text=True)
    status, digest, seconds, peak = json.loads(done.stdout)
    assert status == 0 and digest == expected, done.stderr
    groups = parquet.ParquetFile(file).metadata
    largest = max(groups.row_group(i).total_byte_size for i in range(groups.num_row_groups))
    assert groups.num_rows == rows and largest > 0.9e9 and peak <= 2 * largest + ROOM

    pa.set_cpu_count(1)
    begin, seen = time.process_time(), 0
    for batch in parquet.ParquetFile(file).iter_batches(batch_size=4096, use_threads=False):
        for row in batch.to_pylist():
            seen += len(row)
    theirs = time.process_time() - begin
    begin = time.process_time()
    for batch in parquet.ParquetFile(file).iter_batches(batch_size=4096, use_threads=False):
        seen += batch.num_rows
    columns = time.process_time() - begin
    size = file.stat().st_size
    with capsys.disabled():
        print(f"\n{size / 1e9:.2f} GB, {rows} rows, peak {peak / 1e6:.0f} MB of {2 * largest / 1e6:.0f} and {ROOM / 1e6:.0f}; MB/s of processor time: rows as JSON "
              f"{size / seconds / 1e6:.0f}, pyarrow as rows {size / theirs / 1e6:.0f} (ratio {theirs / seconds:.2f}), "
              f"pyarrow as columns alone {size / columns / 1e6:.0f} (ratio {columns / seconds:.2f})")  # fmt: skip


def lines(run):
    file = run / "metrics.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def metrics(run):
    """The lines of a run without times and speeds."""
    file = run / "metrics.jsonl"
    found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [{key: value for key, value in line.items() if not key.startswith(("time", "perf/"))} for line in found]


def test_a_run_that_is_killed_in_the_middle_of_ten_gigabytes_goes_on_with_the_same_bits(large, tmp_path, capsys):
    file, rows, _ = large
    make_model(tmp_path / "model")
    peaks = []

    def words(run):
        return [TROUPE, "train", "sft", "--actor.model_name_or_path", str(tmp_path / "model"), "--data.dataset", str(file), "--run.path", str(run),
                "--data.shuffle_buffer", "5000", "--data.max_len", "64", "--train.batch_size", "8", "--train.max_steps", "8", "--train.threads", "1",
                "--ckpt.save_steps", "1", "--logger.tensorboard", "false"]  # fmt: skip

    def ends(run):
        done = subprocess.run([sys.executable, "-IS", "-c", READ, *words(run)], capture_output=True, check=True, text=True)
        status, _, _, peak = json.loads(done.stdout)
        assert status == 0, done.stderr
        peaks.append(peak)

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    ends(whole)
    log = tmp_path / "log"
    with log.open("w") as out, subprocess.Popen(words(killed), stdout=out, stderr=out) as program:
        while lines(killed) < 3 and program.poll() is None:
            time.sleep(0.002)
        program.send_signal(signal.SIGKILL)
    assert 3 <= len(metrics(killed)) < 8, log.read_text()
    ends(killed)
    assert metrics(killed) == metrics(whole) and len(metrics(whole)) == 8
    weights = "ckpt/step_000008/model/model.safetensors"
    assert (killed / weights).read_bytes() == (whole / weights).read_bytes()
    groups = parquet.ParquetFile(file).metadata
    assert max(peaks) <= 2 * max(groups.row_group(i).total_byte_size for i in range(groups.num_row_groups)) + ROOM
    with capsys.disabled():
        print(f"\n{rows} rows streamed, peak {max(peaks) / 1e6:.0f} MB")
