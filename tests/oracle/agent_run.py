"""Runs that learn from the agents of this process, and what a run leaves of them: the parts of agent_run_test.py."""

import bisect
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socketserver
import subprocess
import shlex
import sys
import threading
import time

import httpx

from served import BUILD, PATIENCE_S, serve

HERE = pathlib.Path(__file__).parent
POLL_S = 0.02
GENERATORS = 4
AT_ONCE = 32  # prompts of a request


class Agents(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Plays the agents of a run, one thread each; `agent_program.py` connects them with it."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, path, agent_of, play):
        """`agent_of(number, url, key, task)` makes one; `play(agent)` is its episode."""
        super().__init__(str(path), None)
        self.command = shlex.join([sys.executable, "-I", "-S", str(HERE / "agent_program.py"), str(path)])
        self.agent_of, self.play, self.agents, self.errors, self.lock = agent_of, play, [], [], threading.Lock()

    def finish_request(self, request, client_address):
        with request.makefile("rwb") as program:
            try:
                with self.lock:
                    self.agents.append(self.agent_of(len(self.agents), *json.loads(program.readline())))
                    agent = self.agents[-1]
                self.play(agent)
                program.write(b".")
            except Exception as error:  # the run's test raises it
                self.errors.append(error)
                program.write(b"!")

    def turns(self):
        return sum(len(agent.turns) for agent in list(self.agents))


@contextlib.contextmanager
def agents(path, agent_of, play):
    with Agents(path, agent_of, play) as all_of_them:
        thread = threading.Thread(target=all_of_them.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield all_of_them
        finally:
            all_of_them.shutdown()
            thread.join()


class Killer:
    """Sends SIGKILL to the generators of a run in turn, since one that is lost too often ends the run."""

    def __init__(self, chance):
        self.chance, self.times = chance, collections.Counter()

    def kill(self, run):
        """Whether one was there."""
        found = list(self.generators(run).items())
        self.chance.shuffle(found)
        for name, pid in sorted(found, key=lambda one: self.times[one[0]])[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.times[name] += 1
                return True
        return False

    @staticmethod
    def generators(run):
        """Process ids of those that live now, by name."""
        found = {}
        for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, parent = status.read_text().rpartition(")")[2].split()[:2]
                words = (status.parent / "cmdline").read_bytes().decode().split("\0")
                for word in words if int(parent) == run.pid and state != "Z" else []:
                    if word.startswith("generator-"):
                        found[word] = int(status.parent.name)
        return found


def learn(folder, path, command, rows, *more, meanwhile=lambda run: None):
    """A run with the folder `path`/run; `meanwhile` is called all the time. Returns what the run said."""
    (path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["--actor.model_name_or_path", folder, "--data.prompt_dataset", path / "rows.jsonl",
             "--data.input_key", "prompt", "--env.command", command, "--env.confined", "false",
             "--rollout.max_new_tokens", "2000", "--rollout.generators", GENERATORS, "--algo.advantage.estimator",
             "group_norm", "--run.path", path / "run", "--run.keep_experience", "true", *more]
    with open(path / "said", "w") as said:
        run = subprocess.Popen([BUILD / "troupe", "train", "ppo", *map(str, words)], stdout=said, stderr=said)
        try:
            while run.poll() is None:
                time.sleep(POLL_S)
                meanwhile(run)
        finally:
            run.kill()
            run.wait()
    assert run.returncode == 0, (path / "said").read_text()
    return (path / "said").read_text()


def traces_of(run):
    """By update, slot and episode, as the lines of rollouts name them: the turns of every episode."""
    done = subprocess.run([BUILD / "troupe", "trace", run], capture_output=True, text=True, timeout=PATIENCE_S * 5)
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        turns = json.loads(line)["turns"]
        update, prompt, episode = map(int, re.fullmatch(r"update-(\d+)/prompt-(\d+)/episode-(\d+)/0",
                                                        turns[0]["node_id"]).groups())
        found[update, prompt - 1, episode] = turns
    return found


def rollouts_of(run):
    """The samples of every episode, as the run's files have them, by the same names."""
    found = {}
    for file in (run / "rollouts").iterdir():
        for line in file.read_text().split("\n")[:-1]:  # texts hold other ends of lines
            sample = json.loads(line)
            found.setdefault((sample["step"], sample["slot"], sample["episode"]), []).append(sample)
    return found


def tokens_of(turns):
    """Every drawn token of `turns` (prompt, drawn, log-probs), with all that came before it. A call from which a fork
    goes on in its middle may be two turns of a trace; its tokens are the same."""
    found = []
    for prompt, drawn, logprobs in turns:
        before = 0
        for one in prompt:
            before = hash((before, one))
        for token, logprob in zip(drawn, logprobs, strict=True):
            found.append((before, token, logprob))
            before = hash((before, token))
    return sorted(found)


def weights_of(folder, path, version):
    """A model folder with the weights that the run in `path` had after so many updates."""
    if version == 0:
        return folder
    copy = path / f"version-{version}"
    shutil.copytree(folder, copy)
    shutil.copy(path / "run" / "ckpt" / f"step_{version:06}" / "policy" / "weights.safetensors",
                copy / "model.safetensors")
    return copy


def recompute(folder, sequences):
    """A function of a sequence of ids: the log-prob of each, by a server of the model `folder` that knows nothing of
    a run. A sequence that begins another is not computed twice."""
    whole = sorted(set(sequences))
    whole = [one for one, after in zip(whole, [*whole[1:], ()]) if after[:len(one)] != one]
    logprobs = []
    with serve(folder) as address, httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
        for begin in range(0, len(whole), AT_ONCE):
            echo = http.post("/v1/completions", json=dict(
                model="tiny", prompt=whole[begin:begin + AT_ONCE], max_tokens=0, echo=True, logprobs=0))
            logprobs += [one["logprobs"]["token_logprobs"] for one in echo.raise_for_status().json()["choices"]]
    return lambda ids: logprobs[bisect.bisect_left(whole, ids)][:len(ids)]
