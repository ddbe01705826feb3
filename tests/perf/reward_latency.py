#!/usr/bin/env python3
"""How long a reward of 1 s latency takes for an update of many groups: over HTTP with one server, with three, with
three of which one is frozen (from the start, or half way), and as an `async def` function. Each case is one
process of build/bin/reward_driver: the real reward role, with the groups of one update at the same time.
Prints a table; ends with 1 when a case loses a score or a goal is missed. Run by hand:

    tests/perf/reward_latency.py [--groups 1024] [--latency 1.0]
"""
import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

DRIVER = pathlib.Path(__file__).parents[2] / "build" / "bin" / "reward_driver"
GOAL_S = 10.0  # of 1,024 groups at 1 s


class Server:
    """Answers each request after the latency with the length of its query; many at a time, until it freezes."""

    def __init__(self, latency, freezes_after=None):
        self.latency, self.freezes_after, self.asked = latency, freezes_after, 0
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        threading.Thread(target=self.run, daemon=True).start()
        self.ready.wait()

    def run(self):
        asyncio.set_event_loop(self.loop)

        async def serve():
            server = await asyncio.start_server(self.answer, "127.0.0.1", 0, backlog=1024)
            self.port = server.sockets[0].getsockname()[1]
            self.ready.set()
            async with server:
                await server.serve_forever()
        with contextlib.suppress(asyncio.CancelledError):
            self.loop.run_until_complete(serve())

    async def answer(self, reader, writer):
        header = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in header.lower().split(b"\r\n")
                      if line.startswith(b"content-length"))
        request = json.loads(await reader.readexactly(length))
        self.asked += 1
        if self.freezes_after is not None and self.asked > self.freezes_after:
            await asyncio.Event().wait()
        await asyncio.sleep(self.latency)
        body = json.dumps({"rewards": [len(query) for query in request["query"]]}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
                     b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/get_reward"


def timed(groups, *words):
    """Seconds, and how many of the scores are right."""
    lines = "".join(json.dumps({"prompt": "p" * (i % 50), "response": ["ab"], "label": ""}) + "\n"
                    for i in range(groups))
    begin = time.monotonic()
    done = subprocess.run([DRIVER, "--together", *words], input=lines, text=True, capture_output=True,
                          timeout=600, check=True)
    seconds = time.monotonic() - begin
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    right = sum(reply.get("values") == [i % 50 + 2] for i, reply in enumerate(replies))
    return seconds, right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=1024)
    parser.add_argument("--latency", type=float, default=1.0)
    args = parser.parse_args()
    results, kept = [], []

    def case(name, servers=(), words=()):
        kept.extend(servers)
        seconds, right = timed(args.groups, *words, *[server.url for server in servers])
        asked = ", ".join(str(server.asked) for server in servers)
        results.append((name, seconds, right))
        print(f"{name:44} {seconds:6.1f} s  {right}/{args.groups} right  requests {asked}", flush=True)

    case("HTTP, one server", [Server(args.latency)])
    case("HTTP, three servers", [Server(args.latency) for _ in range(3)])
    case("HTTP, three servers, one frozen", [Server(args.latency), Server(args.latency, 0), Server(args.latency)])
    case("HTTP, three servers, one freezes half way",
         [Server(args.latency), Server(args.latency, args.groups // 6), Server(args.latency)])
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "reward.py")
        with open(file, "w", encoding="utf-8") as out:
            out.write("import asyncio\nasync def reward_func(queries, prompts, labels):\n"
                      f"    await asyncio.sleep({args.latency})\n    return [len(q) for q in queries]\n")
        case("async def, one worker", words=["--python", file, "1"])
    goal = GOAL_S * args.latency * max(1, args.groups / 1024)
    wrong = [name for name, seconds, right in results if right != args.groups or seconds > goal]
    if wrong:
        print("missed: " + "; ".join(wrong))
    sys.stdout.flush()
    os._exit(1 if wrong else 0)  # the frozen server's requests have no end


if __name__ == "__main__":
    main()
