"""A headless browser for tests, driven over WebDriver (W3C) by the standard library alone."""

import base64
import json
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest

PATIENCE_S = 60
BROWSERS = ("chromium", "google-chrome", "chrome")


def skip_without_browser():
    browser = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if shutil.which("chromedriver") is None or browser is None:
        pytest.skip("no headless browser: apt-get install chromium chromium-driver", allow_module_level=True)
    return browser


class Browser:
    def __init__(self, width=1280, height=900):
        self.profile = tempfile.TemporaryDirectory()
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        try:
            port = next(found.group(1) for found in (
                re.search(r"started successfully on port (\d+)", line) for line in self.driver.stdout) if found)
            self.root = f"http://127.0.0.1:{port}"
            options = {"binary": skip_without_browser(), "args": [
                "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                f"--user-data-dir={self.profile.name}", f"--window-size={width},{height}"]}
            always = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": always}})
            self.root += f"/session/{session['sessionId']}"
        except BaseException:
            self.close()
            raise

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, method=method, data=data,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from error

    def open(self, path):
        """Returns when the page has loaded, its script done."""
        self.call("POST", "/url", {"url": path.resolve().as_uri()})

    def run(self, script, *arguments):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def messages(self):
        """What the browser has complained of since it was last asked, refused scripts among it."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})]

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    def close(self):
        try:
            if "/session/" in getattr(self, "root", ""):
                self.call("DELETE", "")
        finally:
            self.driver.kill()
            self.driver.wait()
            self.profile.cleanup()
