#!/usr/bin/env python3
"""A soak of `troupe serve` over HTTP: the real program on a tiny model, and for some minutes random
requests at it from many clients at once: streamed and not, n > 1, log-probs, echo, penalties, stops,
lists of prompts, chats; clients that hang up in the middle; malformed JSON, broken HTTP, oversized
bodies, more connections than are allowed; pause, resume, sleep and wake in between. After each round
everybody leaves, and it must be quiet: the server alive, nothing running, nothing waiting, all blocks
free; and when some more come and hang up during a pause, they are let go in it. Equal requests must
have had equal answers throughout (those that a pause ended: a beginning of them), other seeds other
ones, and memory (PSS, measured after a sleep gave the KV blocks back) must stay flat. Prints one JSON
object; exit status 1 when something was wrong. Run by hand with the python of .venv/oracle:

  .venv/oracle/bin/python tests/perf/serve_soak.py --seconds 300
"""
import argparse
import collections
import contextlib
import http.client
import json
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant: "
PATIENCE_S = 120
FLAGS = ["--max-num-seqs", "12", "--max-num-batched-tokens", "64", "--kv-cache-memory-bytes", "524288",
         "--max-connections", "60", "--threads", "1"]


def make_model(folder):
    """A tiny Llama over bytes, with a context that some requests fill."""
    sys.path.insert(0, str(ROOT / "tests" / "oracle"))
    import torch
    from byte_model import END, byte_tokenizer
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(5)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=257, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, eos_token_id=END, bos_token_id=None,
        pad_token_id=END, tie_word_embeddings=False))
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(0, 0.3)
    model.save_pretrained(folder)
    byte_tokenizer(folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)


def random_request(rng, number):
    """(path, body) of a request with a seed; `stream` is left to the moment of asking."""
    text = "".join(rng.choice("abcdefgh 0123456789+=") for _ in range(rng.randint(1, 200)))
    shared = "a beginning that many prompts have, longer than a few blocks of sixteen tokens: "
    body = {"model": "tiny", "seed": number, "max_tokens": rng.choice([1, 8, 40, 150]), "n": rng.choice([1, 1, 2, 5]),
            "temperature": rng.choice([0, 0.7, 1, 1.5]), "ignore_eos": rng.random() < 0.7}
    for name, values in {"top_k": [5, 50], "top_p": [0.5, 0.9], "min_p": [0.05], "stop": [["a", "zz"], "e"],
                         "presence_penalty": [1.0], "frequency_penalty": [0.5, -0.5], "repetition_penalty": [1.3],
                         "logit_bias": [{"97": 5}], "min_tokens": [1]}.items():
        if rng.random() < 0.25:
            body[name] = rng.choice(values)
    if rng.random() < 0.25:
        body |= {"messages": [{"role": "user", "content": text}]}
        if rng.random() < 0.5:
            body |= {"logprobs": True, "top_logprobs": rng.choice([0, 3])}
        return "/v1/chat/completions", body
    prompts = [text, shared + text, list(text.encode())]
    body["prompt"] = rng.choice([*prompts, [shared + text, text]])
    if rng.random() < 0.4:
        body["logprobs"] = rng.choice([0, 3])
    if "logprobs" not in body or body["n"] == 1:
        body["echo"] = rng.random() < 0.3
    return "/v1/completions", body


def may_stream(body):
    return not (body.get("echo") and "logprobs" in body)


class Choices:
    """What an answer says of each choice, streamed or whole: text, log-probs, the reason of its end."""

    def __init__(self):
        self.text, self.logprobs, self.ends = (collections.defaultdict(str), collections.defaultdict(list), {})

    def take(self, answer):
        for one in answer["choices"]:
            index, part = one["index"], one.get("message") or one.get("delta") or one
            self.text[index] += part.get("text", part.get("content", "")) or ""
            probs = one.get("logprobs") or {}
            self.logprobs[index] += probs.get("token_logprobs") or [p["logprob"] for p in probs.get("content") or []]
            self.ends[index] = one["finish_reason"] or self.ends.get(index)

    def key(self):
        return {i: (self.text[i], tuple(self.logprobs[i]), self.ends[i]) for i in sorted(self.ends)}

    def agrees(self, expected):
        """Equal, or cut off by a pause: then a beginning."""
        found = self.key()
        if found.keys() != expected.keys():
            return False
        for index, (text, probs, end) in found.items():
            want_text, want_probs, want_end = expected[index]
            # The last character may be half of one, or the first half of a stop string.
            cut = end == "abort" and want_text.startswith(text.rstrip("\ufffd")[:-1])
            if not cut and (text, probs, end) != (want_text, want_probs, want_end):
                return False
        return True


class Soak:
    def __init__(self, port, pid, seed):
        self.port, self.pid, self.seed = port, pid, seed
        self.lock, self.counts, self.wrong = threading.Lock(), collections.Counter(), []
        rng = random.Random(seed)
        self.requests = [random_request(rng, i) for i in range(60)]
        self.expected = [self.ask(path, body)[1].key() for path, body in self.requests]
        draw = {"prompt": "draw", "max_tokens": 40}
        drawn = [self.ask("/v1/completions", draw | {"seed": seed})[1].text[0] for seed in (1, 2)]
        if drawn[0] == drawn[1]:
            self.complain(f"seeds 1 and 2 drew the same: {drawn[0]}")

    def note(self, name):
        with self.lock:
            self.counts[name] += 1

    def complain(self, what):
        with self.lock:
            self.wrong.append(what[:500])

    def call(self, method, path, body=None):
        """(status, text) of one request in one piece."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")

    def ask(self, path, body):
        status, text = self.call("POST", path, json.dumps(body))
        choices = Choices()
        if status != 200:
            return status, text
        for line in text.split("\n\n") if body.get("stream") else [text]:
            line = line.removeprefix("data: ")
            if line and line != "[DONE]":
                answer = json.loads(line)
                if "error" in answer:
                    return 500, line
                choices.take(answer)
        return status, choices

    def metrics(self):
        page = self.call("GET", "/metrics")[1]
        return {m[1]: float(m[2]) for m in re.finditer(r"^((?:vllm|troupe)[\w:]+)\{[^}]*\} (\S+)$", page, re.M)}

    # What a client does; each gives the name that it is counted under.
    def good(self, rng):
        number = rng.randrange(len(self.requests))
        path, body = self.requests[number]
        stream = may_stream(body) and rng.random() < 0.5
        status, got = self.ask(path, body | {"stream": stream})
        if status == 503:
            return "told to come later"
        if status != 200:
            self.complain(f"{status} for {body}: {got}")
        elif not got.agrees(self.expected[number]):
            self.complain(f"stream={stream}, {body}: {got.key()} is not {self.expected[number]}")
        elif "abort" in got.ends.values():
            return "cut by a pause"
        return "streamed" if stream else "whole"

    def begun(self, stream, n):
        """A connection with a long request on it."""
        body = json.dumps({"prompt": "go on", "max_tokens": 400, "n": n, "ignore_eos": True, "stream": stream})
        client = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
        client.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}"
                       .encode())
        return client

    def hang_up(self, rng):
        stream = rng.random() < 0.7
        with self.begun(stream, rng.choice([1, 4])) as client:
            if stream:
                client.recv(rng.choice([1, 200, 4000]))
            else:
                time.sleep(rng.random() * 0.2)
        return "hung up streaming" if stream else "hung up waiting"

    def refused(self, method, path, body, wanted, name):
        status, text = self.call(method, path, body)
        if status not in (wanted, 503) or "error" not in json.loads(text):
            self.complain(f"{name}: {status} {text}")
        return name

    def malformed(self, rng):
        good = json.dumps(self.requests[rng.randrange(len(self.requests))][1])
        return self.refused("POST", "/v1/completions", good[:rng.randrange(1, len(good))], 400, "malformed JSON")

    def mistaken(self, rng):
        body = rng.choice([{"prompt": "a", "temperature": -1}, {"prompt": ""}, {"prompt": "a", "nonsense": 1},
                           {"prompt": "a" * 600}, {"prompt": [999]}, {"prompt": "a", "n": 10**6}])
        return self.refused("POST", "/v1/completions", json.dumps(body), 400, "mistaken field")

    def oversized(self, rng):
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as client:
            client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n")
            status = client.recv(4096)[9:12]
        if status not in (b"413", b"503"):
            self.complain(f"oversized: {status}")
        return "oversized body"

    def broken_http(self, rng):
        words = rng.choice([b"\x00\x01\x02\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nHost: x",
                            b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"A" * 40000])
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as client, contextlib.suppress(OSError):
            client.sendall(words)
            client.settimeout(0.2)
            if client.recv(4096).startswith(b"HTTP/1.1 200"):
                self.complain(f"200 for {words[:60]}")
        return "broken HTTP"

    def crowd(self, rng):
        with contextlib.ExitStack() as held:
            for _ in range(80):
                held.enter_context(socket.create_connection(("127.0.0.1", self.port), PATIENCE_S))
            time.sleep(0.05)
        return "crowd of connections"

    def look(self, rng):
        path = rng.choice(["/health", "/metrics", "/v1/models", "/version", "/is_paused", "/is_sleeping"])
        status, _ = self.call("GET", path)
        if status not in (200, 503):
            self.complain(f"{path}: {status}")
        return "looked"

    def client(self, number, end):
        rng = random.Random(f"{self.seed} {number} {end}")
        acts = [(self.good, 60), (self.hang_up, 15), (self.malformed, 6), (self.mistaken, 6), (self.oversized, 3),
                (self.broken_http, 4), (self.look, 5), (self.crowd, 0.3)]
        while time.monotonic() < end:
            act = rng.choices([a for a, _ in acts], [w for _, w in acts])[0]
            try:
                self.note(act(rng))
            except (ConnectionError, http.client.RemoteDisconnected):
                self.note("connection reset")  # of those that were one too many
            except Exception as error:  # an answer that never came, or is none
                self.complain(f"{act.__name__}: {type(error).__name__} {error}")

    def control(self, end):
        rng = random.Random(f"{self.seed} control {end}")
        while time.monotonic() < end:
            time.sleep(0.2 + 2 * rng.random())
            kind = rng.choice(["pause keep", "pause recompute", "pause abort", "sleep 1", "sleep 2"])
            begin, back = (f"/pause?mode={kind[6:]}", "/resume") if kind[0] == "p" else (f"/sleep?level={kind[6:]}", "/wake_up")
            self.insist(begin)
            time.sleep(0.3 * rng.random())
            self.insist(back)
            self.note(kind)

    def insist(self, path):
        """A call that a full server may not hear at first."""
        for _ in range(600):
            with contextlib.suppress(ConnectionError, http.client.RemoteDisconnected):
                status, text = self.call("POST", path)
                if status == 200:
                    return
                if status != 503:
                    self.complain(f"{path}: {status} {text}")
                    return
            time.sleep(0.05)
        self.complain(f"{path}: never heard")

    def pss_kb(self):
        rollup = pathlib.Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        return int(re.search(r"^Pss:\s+(\d+) kB", rollup, re.M)[1])

    def settled(self, there):
        """Running, waiting and the share of blocks in use: once `there` holds for them, or as they stay."""
        for _ in range(300):
            seen = self.metrics()
            left = (seen["vllm:num_requests_running"], seen["vllm:num_requests_waiting"], seen["vllm:kv_cache_usage_perc"])
            if there(left):
                break
            time.sleep(0.1)
        return left

    def leave_in_a_pause(self):
        """Nothing is computed then, so what goes is what was let go because its client went."""
        with contextlib.ExitStack() as held:
            for client in [held.enter_context(self.begun(True, 4)) for _ in range(3)]:
                client.recv(1)  # it has begun
            self.insist("/pause?mode=keep")
            began = sum(self.settled(lambda _: True)[:2])
            for stream in (True, True, False, False):
                held.enter_context(self.begun(stream, 4))
            came = self.settled(lambda left: left[0] + left[1] == began + 16)
        left = self.settled(lambda left: left == (0, 0, 0))
        self.insist("/resume")
        if came[0] + came[1] != began + 16 or left != (0, 0, 0):
            self.complain(f"in a pause 16 came to {began}: {came}; when all had hung up there were {left}")

    def quiet(self):
        """After a round: nothing may be left. Gives the memory in use."""
        left = self.settled(lambda left: left == (0, 0, 0))
        if left != (0, 0, 0) or self.call("GET", "/health")[0] != 200:
            self.complain(f"running, waiting, used blocks after a round: {left}")
        self.leave_in_a_pause()
        self.insist("/sleep?level=1")
        self.insist("/wake_up")
        return self.pss_kb()

    def round(self, seconds, clients):
        end = time.monotonic() + seconds
        threads = [threading.Thread(target=self.client, args=(i, end)) for i in range(clients)]
        threads.append(threading.Thread(target=self.control, args=(end,)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.quiet()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--troupe", default=str(ROOT / "build" / "troupe"))
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--grown-kb-max", type=int, default=4096, help="of memory, from the second round to the last")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make_model(pathlib.Path(folder))
        server = subprocess.Popen([args.troupe, "serve", "--model", folder, "--served-model-name", "tiny", "--port", "0",
                                   *FLAGS], stdout=subprocess.PIPE, text=True)
        try:
            port = int(re.search(r"127\.0\.0\.1:(\d+)", server.stdout.readline())[1])
            soak = Soak(port, server.pid, args.seed)
            pss = [soak.round(args.seconds / args.rounds, args.clients) for _ in range(args.rounds)]
            last = soak.metrics()
            server.send_signal(signal.SIGINT)
            status = server.wait(PATIENCE_S)
        finally:
            server.kill()
    grown = pss[-1] - pss[min(1, len(pss) - 1)]
    if grown > args.grown_kb_max:
        soak.complain(f"memory grew by {grown} kB")
    if status != 0:
        soak.complain(f"the server ended with {status}")
    print(json.dumps({"soak": "serve", "ok": not soak.wrong, "seconds": args.seconds, "clients": args.clients,
                      "counts": dict(sorted(soak.counts.items())), "pss_kb": pss, "grown_kb": grown,
                      "tokens": last["vllm:generation_tokens_total"], "preempted": last["vllm:num_preemptions_total"],
                      "prefix_hit_tokens": last["vllm:prefix_cache_hits_total"],
                      "refused": last["troupe_requests_refused_total"], "wrong": soak.wrong[:10],
                      "wrong_count": len(soak.wrong)}))
    return 1 if soak.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
