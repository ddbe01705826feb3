"""The page of `troupe report` in a headless browser: of a finished, a live, an empty and a damaged
folder, and of one whose every text is markup. The browser says what exists and what ran."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from browser import Browser, skip_without_browser
from long_run import METRICS, write_long_run

skip_without_browser()

TROUPE = Path(os.environ["TROUPE_BUILD_DIR"]) / "troupe"
EVIL = ("</script><script>document.documentElement.dataset.owned='yes'</script>"
        "<img src=x onerror=\"document.documentElement.dataset.owned='yes'\"><!--\u202e\u2028\u0000'`&lt;")
ELEMENTS = {"a", "b", "body", "button", "circle", "dd", "details", "div", "dl", "dt", "footer", "h1", "h2", "h3", "h4",
            "head", "header", "html", "i", "input", "label", "li", "line", "main", "meta", "nav", "noscript",
            "option", "p", "path", "script", "section", "select", "span", "style", "summary", "svg", "table",
            "tbody", "td", "text", "th", "thead", "title", "tr", "ul"}  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


def report(out, *runs):
    subprocess.run([str(word) for word in [TROUPE, "report", *runs, "--out", out]], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return out


def opened(browser, page):
    """The text that a reader sees; nothing foreign exists, ran, or was asked for."""
    browser.open(page)
    assert browser.messages() == []
    root = "document.documentElement."
    assert browser.run(f"return {root}dataset.ready") is not None, "the script reached its end"
    assert browser.run(f"return {root}dataset.owned || null") is None
    names = browser.run("return [...new Set([...document.querySelectorAll('*')].map((e) => e.localName))]")
    assert set(names) <= ELEMENTS
    assert browser.run("return document.scripts.length") == 2
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    return browser.run("return document.body.innerText")


def texts(browser, selector):
    return browser.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)", selector)


def click(browser, selector, at=0):
    browser.run("document.querySelectorAll(arguments[0])[arguments[1]].click()", selector, at)


def type_into(browser, selector, text):
    browser.run("""const box = document.querySelector(arguments[0]);
                   box.value = arguments[1]; box.dispatchEvent(new Event('input'))""", selector, text)


def rollout(step, slot, sample, reward, prompt="p", response="r"):
    return {"step": step, "slot": slot, "attempt": 0, "prompt_id": slot, "sample": sample, "prompt": prompt,
            "response": response, "label": prompt, "tokens": 3, "reward": reward, "reward_set": 0,
            "rewards": {prompt: reward}, "finish_reason": "eos", "truncated": False,
            "version_min": 0, "version_max": 0, "extra": {prompt: response}}  # fmt: skip


def make_run(folder, text):
    """A run folder in which `text` stands wherever a text can stand."""
    for part in ("rollouts", "eval", "nodes"):
        (folder / part).mkdir(parents=True)
    metrics = [{"step": step, "time": 1.7e9 + step, "reward/mean": step / 10, text: 1} for step in range(1, 11)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in metrics))
    for step in range(1, 11):
        rows = [rollout(step, slot, sample, (step + sample) / 8, text, f"{text} {step}") for slot in (0, 1) for sample in (0, 1)]
        (folder / "rollouts" / f"step_{step:06d}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for step in (0, 10):
        row = {"step": step, "mode": "greedy", "prompt_id": 0, "prompt": text, "label": text,
               "rewards": [step / 10], "responses": [text], "datasource": text}  # fmt: skip
        (folder / "eval" / f"step_{step:06d}.jsonl").write_text(json.dumps(row) + "\n")
    (folder / "nodes" / (text.replace("/", "")[:60].replace("\0", "") + ".log")).write_text(text)
    (folder / "troupe.log").write_text(f"2026-01-01T00:00:00.000+00:00 info {text} was lost\n", errors="replace")
    (folder / "resolved_config.yaml").write_text(f"method: {json.dumps(text)}\nactor:\n  model_name_or_path: {json.dumps(text)}\n")
    role = {"name": text, "node": text, "busy_s": 1, "wall_s": 2, "idle_s": {text: 1}}
    status = {"roles": [role], "nodes": [{"name": text, "host": text}], "cast": [],
              "lost": [{"name": text, "host": text, "cause": text, "last_lines": [text]}]}  # fmt: skip
    (folder / "status.json").write_text(json.dumps(status))
    return folder


def test_hostile_text_is_text_wherever_it_stands(browser, tmp_path):
    run = make_run(tmp_path / EVIL.replace("/", "").replace("\0", "")[:200], EVIL)
    seen = opened(browser, report(tmp_path / "page.html", run, make_run(tmp_path / "plain", "plain")))
    assert "</script><script>document" in seen
    assert "[U+202E]" in seen and "[U+2028]" in seen and "[U+0000]" in seen
    for at in range(2):
        click(browser, "#rollouts tr.row", at)
        click(browser, "#held-out tr.row", at)
    browser.run("document.querySelectorAll('details').forEach((e) => { e.open = true })")
    assert browser.run("return document.documentElement.dataset.owned || null") is None
    assert browser.messages() == []
    assert browser.run("return document.images.length") == 0
    assert browser.run("return document.title.includes('2 runs')")


def test_the_table_sorts_searches_and_opens_a_row(browser, tmp_path):
    opened(browser, report(tmp_path / "page.html", make_run(tmp_path / "run", "word")))
    rows = "#rollouts tbody tr.row"
    assert len(texts(browser, rows)) == 40

    def rewards():
        return [float(text) for text in texts(browser, rows + " td:nth-child(5)")]

    heads = texts(browser, "#rollouts th")
    click(browser, "#rollouts th button", heads.index("reward"))
    assert rewards() == sorted(rewards(), reverse=True) and rewards()[0] == 11 / 8
    click(browser, "#rollouts th button", heads.index("reward"))
    assert rewards() == sorted(rewards()) and rewards()[0] == 1 / 8
    type_into(browser, "#rollouts input", "WORD 10")
    assert len(texts(browser, rows)) == 4
    click(browser, rows)
    assert texts(browser, "#rollouts .detail .model") == ["word", "word 10"]
    type_into(browser, "#rollouts input", "not there")
    assert texts(browser, rows) == []
    assert "Nothing fits." in texts(browser, "#rollouts tbody")[0]


def test_charts_show_values_switch_scale_and_hide_runs(browser, tmp_path):
    opened(browser, report(tmp_path / "page.html", make_run(tmp_path / "one", "a"), make_run(tmp_path / "two", "b")))
    chart = "#curves .chart"
    browser.run("document.querySelector(arguments[0]).scrollIntoView()", chart)
    browser.call("POST", "/timeouts", {"script": 20000})
    browser.call("POST", "/execute/async", {"args": [], "script": """
        const done = arguments[0];
        const look = () => document.querySelector('#curves .chart path.curve') ? done() : requestAnimationFrame(look);
        look();"""})
    lines = "return document.querySelector('#curves .chart').querySelectorAll('path.curve').length"
    assert browser.run(lines) == 2
    assert texts(browser, chart + " h4")[0] == "reward/mean"
    browser.run("""const box = document.querySelector('#curves .chart svg'), at = box.getBoundingClientRect();
                   box.dispatchEvent(new PointerEvent('pointermove', {clientX: at.right - 2, clientY: at.top + 9}))""")
    assert texts(browser, chart + " .read")[0].split() == ["step", "10:", "1", "1"]
    before = browser.run("return document.querySelector('#curves path.curve').getAttribute('d')")
    click(browser, "#curves .tools input[type=checkbox]")
    assert browser.run("return document.querySelector('#curves path.curve').getAttribute('d')") != before
    click(browser, "header .chip")
    assert browser.run(lines) == 1
    assert len(texts(browser, "#rollouts tbody tr.row")) == 40


def test_an_empty_and_a_damaged_folder_say_what_could_not_be_read(browser, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "metrics.jsonl is not there" in opened(browser, report(tmp_path / "empty.html", tmp_path / "empty"))
    run = make_run(tmp_path / "damaged", "text")
    for path in [path for path in run.rglob("*") if path.is_file()]:
        content = path.read_bytes()
        half = len(content) // 2
        path.write_bytes(content[: half // 2] + b"\0\xff\xfe garbage \n{" + content[half:])
    (run / "rollouts" / "step_000005.jsonl").write_bytes(b"{" + b"x" * (17 << 20) + b"\n")
    seen = opened(browser, report(tmp_path / "damaged.html", run))
    assert "What could not be read" in seen
    assert "longer than 16 MiB" in seen and "no JSON object" in seen


def test_a_live_run_and_the_finished_one(browser, tmp_path):
    subprocess.run([TROUPE, "model", "random", "--shape", "tiny", "--out", tmp_path / "model"], check=True)
    rows = tmp_path / "data.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"{i} {EVIL}", "answer": "a"}) + "\n" for i in range(6)))
    command = [TROUPE, "train", "ppo", "--actor.model_name_or_path", tmp_path / "model", "--data.prompt_dataset",
               rows, "--data.input_key", "prompt", "--data.label_key", "answer", "--reward.rule", "regex",
               "--reward.rule_pattern", "[A-Za-z]{2}", "--rollout.batch_size", "2", "--rollout.n_samples_per_prompt",
               "2", "--data.prompt_max_len", "300", "--rollout.max_new_tokens", "6", "--train.max_steps", "100000",
               "--run.path", tmp_path / "run", "--cluster.head_wait_s", "0"]  # fmt: skip
    live = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
    try:
        metrics = tmp_path / "run" / "metrics.jsonl"
        while not (metrics.exists() and metrics.read_text().count("\n") > 3):
            assert live.poll() is None
        seen = opened(browser, report(tmp_path / "live.html", tmp_path / "run"))
    finally:
        live.send_signal(signal.SIGINT)
        live.wait()
    assert "running" in texts(browser, ".badge")
    assert browser.run("return document.querySelectorAll('#rollouts tr.row').length") > 3
    click(browser, "#rollouts tr.row", 1)
    assert len(texts(browser, "#rollouts .tok")) > 0, "the log still has the tokens of a run in progress"
    assert "policy/0" not in seen, "shares of roles come when it ends"
    seen = opened(browser, report(tmp_path / "finished.html", tmp_path / "run"))
    assert "not running here" in texts(browser, ".badge")
    assert "policy/0" in seen and "generator/0" in seen


def test_a_long_run_is_thinned_and_says_so(browser, tmp_path):
    """How long it takes to open is measured by tests/perf/report_open.py."""
    page = report(tmp_path / "page.html", write_long_run(tmp_path / "run", 10_000, 200))
    assert page.stat().st_size < 8_000_000
    seen = opened(browser, page)
    assert "1,000 samples of 63 of 10,000 updates" in seen and "spread evenly" in seen
    assert "of each 32 values the mean" in seen
    assert len(texts(browser, "#curves .chart")) == len(METRICS)
    assert "1,000 of 1,000, page 1 of 20" in seen
    assert "9,000 of 10,000 lines are left out" in seen
