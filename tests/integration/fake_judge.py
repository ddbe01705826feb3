#!/usr/bin/env python3
"""A judge with OpenAI's chat completions whose faults are known: a real HTTP process for tests.

  fake_judge.py MODE ASKED    prints its port, then serves; appends to the file ASKED a line of JSON
                              a question: {"auth": ..., "body": ...}

A comparison is asked as "A<<<one>>>B<<<other>>>", anything else for points. MODE:
  longer     names the longer answer, and gives points by length: the judge that loves length
  first      names the first answer, whatever it is
  nonsense   says nothing that parses
  error200   answers with status 200 and an error
  cut        closes the connection without an answer
  warming    answers 503 to its first three questions, then as `longer`
"""

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAIR = re.compile(r"A<<<(.*?)>>>B<<<(.*?)>>>", re.S)
lock = threading.Lock()
asked = 0


def verdict(mode, text):
    if mode == "nonsense":
        return "It depends [[maybe]]."
    pair = PAIR.search(text)
    if pair is None:
        return f"Rating: [[{min(10, len(text))}]]"
    one, other = len(pair[1]), len(pair[2])
    if mode == "first" or one > other:
        return "The first is better: [[A]]"
    return "[[B]]" if other > one else "[[C]]"


class Judge(BaseHTTPRequestHandler):
    def do_POST(self):
        global asked
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with lock:
            asked += 1
            number = asked
            with open(sys.argv[2], "a") as out:
                out.write(json.dumps({"auth": self.headers.get("Authorization"), "body": body}) + "\n")
        mode = sys.argv[1]
        if mode == "cut":
            self.close_connection = True
            return
        if mode == "warming" and number <= 3:
            return self.answer(503, {"error": "warming up"})
        if mode == "error200":
            return self.answer(200, {"error": {"message": "quota"}})
        text = verdict(mode, body["messages"][-1]["content"])
        self.answer(200, {"choices": [{"index": 0, "finish_reason": "stop",
                                       "message": {"role": "assistant", "content": text}}]})

    def answer(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 512  # with 5, the default, the kernel would drop connections of many at once


server = Server(("127.0.0.1", 0), Judge)
print(f"port {server.server_address[1]}", flush=True)
server.serve_forever()
