"""An OpenEnv environment on a server of the `openenv` package: it says again what it hears, and is done after
three steps.

    python docs/examples/openenv_server.py 8000
"""
import sys

import uvicorn
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field


class EchoAction(Action):
    """Says something."""
    message: str = Field(..., description="what to say")


class EchoObservation(Observation):
    echoed: str = ""


class Echo(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        self._state = State(step_count=0)

    def reset(self, seed=None, episode_id=None, **kwargs):
        self._state = State(step_count=0)
        return EchoObservation(echoed=f"ready {seed}", done=False, reward=0.0)

    def step(self, action, timeout_s=None, **kwargs):
        self._state.step_count += 1
        if action.message == "raise":
            raise RuntimeError("told to")
        return EchoObservation(echoed=action.message, done=self._state.step_count == 3,
                               reward=len(action.message) / 10)

    @property
    def state(self):
        return self._state


class Server(uvicorn.Server):
    """Says on which port it listens, which matters for port 0."""

    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)


if __name__ == "__main__":
    app = create_app(Echo, EchoAction, EchoObservation, env_name="echo", max_concurrent_envs=2)
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error")).run()
