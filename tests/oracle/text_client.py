"""Talks to build/bin/text_driver: one JSON request a line, one JSON answer a line."""

import json
import os
import subprocess


class Refused(Exception):
    """The driver answered with an error; `code` is its name in core::ErrorCode."""

    def __init__(self, answer):
        super().__init__(answer["error"])
        self.code = answer["code"]


class TextDriver:
    def __init__(self):
        build = os.environ.get("TROUPE_BUILD_DIR", "build")
        binary = os.environ.get("TROUPE_TEXT_DRIVER", os.path.join(build, "bin", "text_driver"))
        self.process = subprocess.Popen(
            [binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"text_driver died on {request!r}"
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer)
        return answer["ok"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)
