"""All three loggers, and loggers under faults: a run that is killed, side processes that are frozen or
slow to start, no network, a full disk. The run ends well each time, and its rows are there once in the end."""

import ctypes
import json
import os
import signal
import subprocess

import pytest

from loggers_test import (LOGGERS, PATIENCE_S, READ_BACK, SERVICES, TROUPE, caught_up, ended, environment,  # noqa: F401
                          holds_after_it_went_on, holds_all_once, lines, pytestmark, read_back, side_process_of,
                          started, tiny, wait_for, words, written)


def test_three_services_hold_what_the_run_wrote_also_after_it_went_on(tiny, tmp_path):
    run = holds_after_it_went_on(tiny, tmp_path, SERVICES)
    status, *_ = read_back(run, "mlflow")
    assert status == {"status": "FINISHED", "name": "run", "seed": "5"}


def test_a_killed_run_goes_on_without_gaps_and_doubles(tiny, tmp_path):
    run, env = tmp_path / "run", environment(tmp_path)
    command = words(tiny, run, 300, "--logger.trackio", "true", "--logger.wandb", "true", "--ckpt.save_steps", "50")
    process = started(command, env, tmp_path / "log.txt")
    wait_for(lambda: lines(run / "metrics.jsonl") >= 130 and (run / "loggers" / "wandb").exists())
    process.kill()
    process.wait()
    status, text = ended(command, env)
    assert status == 0, text
    caught_up(run, ["trackio", "wandb"], env)
    # Steps after the checkpoint were taken twice: what was sent first stays, with the same numbers
    # but for times.
    for service in ("trackio", "wandb"):
        there = [(step, name) for step, name, _ in read_back(run, service)[-1]]
        assert sorted(there) == sorted((step, name) for step, name, _ in written(run))


def test_a_frozen_side_process_does_not_hold_the_run(tiny, tmp_path):
    run, env = tmp_path / "run", environment(tmp_path)
    process = started(words(tiny, run, 100, "--logger.trackio", "true"), env, tmp_path / "log.txt")
    wait_for(lambda: side_process_of(process.pid))
    os.kill(side_process_of(process.pid), signal.SIGSTOP)
    assert process.wait(PATIENCE_S) == 0
    text = (tmp_path / "log.txt").read_text()
    assert "the last rows are missing; `troupe log" in text, text
    status, text = ended([str(TROUPE), "log", str(run), "--to", "trackio"], env)
    assert status == 0, text
    holds_all_once(run, "trackio")


def interpreter(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def test_one_that_is_slow_to_start_loses_nothing(tiny, tmp_path):
    slow = interpreter(tmp_path / "slow", f'sleep 2\nexec {LOGGERS} "$@"\n')
    run, env = tmp_path / "run", environment(tmp_path, TROUPE_LOGGER_PYTHON=slow)
    status, text = ended(words(tiny, run, 2, "--logger.trackio", "true"), env)
    assert status == 0, text
    caught_up(run, ["trackio"], env)
    holds_all_once(run, "trackio")


def test_no_network(tiny, tmp_path):
    run = tmp_path / "run"
    env = environment(tmp_path, WANDB_MODE="online", WANDB_API_KEY="0" * 40, WANDB_BASE_URL="http://127.0.0.1:9",
                      MLFLOW_HTTP_REQUEST_MAX_RETRIES="0")
    status, text = ended(words(tiny, run, 3, "--logger.wandb", "true", "--logger.mlflow", "true", "--logger.mlflow_uri",
                               "http://127.0.0.1:9"), env)
    assert status == 0, text
    for service in ("wandb", "mlflow"):
        assert f"logger {service}: 0 rows sent" in text and f"--to {service}` sends them" in text, text
    assert "0" * 40 not in "".join(path.read_text(errors="replace") for path in run.rglob("*") if path.is_file())


def test_a_full_disk_of_the_service(tiny, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", bytes(disk), b"tmpfs", 0, b"size=256k") != 0:
        pytest.skip("needs the right to mount")
    try:
        (disk / "fill").write_bytes(b"x" * 200_000)
        run, env = tmp_path / "run", environment(tmp_path, TRACKIO_DIR=str(disk / "trackio"))
        process = started(words(tiny, run, 100, "--logger.trackio", "true"), env, tmp_path / "log.txt")
        wait_for(lambda: "logger trackio" in (tmp_path / "log.txt").read_text() or process.poll() is not None)
        assert process.wait(PATIENCE_S) == 0
        text = (tmp_path / "log.txt").read_text()
        assert "logger trackio: " in text and "the last rows are missing" in text, text
        (disk / "fill").unlink()
        assert libc.mount(b"tmpfs", bytes(disk), b"tmpfs", 32, b"size=64m") == 0  # MS_REMOUNT
        status, text = ended([str(TROUPE), "log", str(run), "--to", "trackio"], env)
        assert status == 0, text
        held = {(step, name) for step, name, _ in json.loads(subprocess.run(
            [LOGGERS, "-c", READ_BACK, run, "trackio", "troupe"], check=True, text=True, capture_output=True,
            env=env).stdout.splitlines()[-1])}
        assert held == {(step, name) for step, name, _ in written(run)}
    finally:
        libc.umount2(bytes(disk), 2)
