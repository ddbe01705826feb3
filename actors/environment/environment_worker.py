"""Runs a user's environment for Troupe: many episodes at a time, on one event loop.

Reads one JSON request a line from standard input and writes one JSON reply a line:
  {"id": 1, "episode": 7, "do": "open", "start": {...}}    -> {"id": 1, "turn": {...}}
  {"id": 2, "episode": 7, "do": "step", "turn": {...}}     -> {"id": 2, "turn": {...}} or {"id": 2, "error": "..."};
                                                              once also "modules": {file: sha256}
  {"id": 3, "episode": 7, "do": "finish"}                  -> {"id": 3, "turn": {...}}
  {"id": 4, "cancel": 2}                                   -> {"id": 4}
  {"close": 7}                                             no reply
Before it calls the user's code for a request it says so, {"begun": 2}: who hangs or dies is then known.
After an error the episode is over. What the file prints goes to standard error; the reply channel is a
descriptor of its own. docs/write_an_environment.md has the user's view.
"""
import asyncio
import inspect
import json
import types


class Replies:
    """Writes one reply a line, without waiting for the reader. The first that follows on a turn of the policy says
    what modules the user's file has loaded."""

    def __init__(self, descriptor, longest, file):
        self.out, self.longest, self.file = os.fdopen(descriptor, "w", buffering=1), longest, file

    def write(self, reply):
        self.out.write(json.dumps(reply) + "\n")

    def turn(self, request, turn):
        text = json.dumps(turn, allow_nan=False)
        if len(text) > self.longest:
            raise ValueError(f"the environment said {len(text)} bytes at once; it may say {self.longest} bytes "
                             "(kObservation_bytes_max), so cut what it observes")
        modules = ""
        if self.file is not None and request["do"] != "open":
            modules, self.file = f', "modules": {json.dumps(loaded_modules(self.file))}', None
        self.out.write(f'{{"id": {request["id"]}, "turn": {text}{modules}}}\n')


class Worker:
    def __init__(self, form, replies):
        self.form, self.replies, self.episodes, self.tasks = form, replies, {}, {}

    async def answer(self, request):
        self.replies.write({"begun": request["id"]})
        try:
            self.replies.turn(request, await self.turn_of(request))
        except asyncio.CancelledError:
            await self.close(request["episode"], False)
            raise
        except BaseException as error:  # SystemExit, too: it costs this episode alone
            await self.close(request["episode"], False)
            self.replies.write({"id": request["id"], "error": trace(error)})

    async def turn_of(self, request):
        number = request["episode"]
        if request["do"] == "open":
            self.episodes[number] = self.form.episode(Start(request["start"]))
            return await self.episodes[number].open()
        episode = self.episodes.get(number)
        if episode is None:
            raise ValueError("the episode is over, after an error or a call that was late")
        return await (episode.step(request["turn"]) if request["do"] == "step" else episode.finish())

    async def close(self, number, healthy):
        episode = self.episodes.pop(number, None)
        try:
            if episode is not None:
                await finished(episode.close(healthy))
        except Exception as error:
            print("the environment's `close` raised:", trace(error), file=sys.stderr)

    async def stop(self, number):
        """A task that is told to end, with as many tries as it takes."""
        task = self.tasks.get(number)
        while task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=0.2)

    async def cancel(self, request):
        await self.stop(request["cancel"])
        self.replies.write({"id": request["id"]})

    async def end(self, number):
        for task, of in list(self.tasks.items()):
            if of.get_name() == f"episode {number}":
                await self.stop(task)
        await self.close(number, True)

    def take(self, request):
        if "close" in request:
            return asyncio.ensure_future(self.end(request["close"])), None
        if "cancel" in request:
            return asyncio.ensure_future(self.cancel(request)), None
        task = asyncio.get_running_loop().create_task(self.answer(request), name=f"episode {request['episode']}")
        return task, request["id"]

    async def serve(self):
        lines = asyncio.StreamReader(limit=1 << 30)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        kept = set()
        while line := await lines.readline():
            task, number = self.take(json.loads(line))
            kept.add(task)
            task.add_done_callback(kept.discard)
            if number is not None:
                self.tasks[number] = task
                task.add_done_callback(lambda _, done=number: self.tasks.pop(done))


def main():
    path = sys.argv[1]
    replies = Replies(int(sys.argv[2]), int(sys.argv[3]), path)
    try:
        stand_in_for_openrlhf()
        form = find_form(user_module("user_environment", path), path)
    except BaseException as error:
        replies.write(unready(error, isinstance(error, (Refusal, NoTool))))
        return 1
    replies.write({"ready": True, "form": form.name})
    asyncio.run(Worker(form, replies).serve())
    return 0


sys.exit(main())
