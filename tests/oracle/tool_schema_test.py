# Compares the JSON schemas of tools (actors/environment/tool_schema.py) with those of transformers, over
# hints and docstrings as users write them, and what each of the two refuses.
import enum
import importlib.util
import os
from typing import Any, Literal, Optional, Union

import pytest
from transformers.utils import get_json_schema

ROOT = os.environ.get("TROUPE_SOURCE_DIR", os.getcwd())
spec = importlib.util.spec_from_file_location("tool_schema", os.path.join(ROOT, "actors/environment/tool_schema.py"))
ours = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ours)


class Color(enum.Enum):
    RED = "red"
    DEEP = 4


class Own:
    pass


def add(a: int, b: float = 2.0) -> float:
    """Adds.

    More text: here.

    Args:
        a: first
        b: second that
            goes on: here
            and here

    Returns:
        the sum
        of both

    Raises:
        ValueError: never
    """


def many(a: list[int], b: dict[str, float], c: Optional[str] = None, d: Union[int, str] = 1,
         e: Literal["x", 2, None] = "x", f: Color = Color.RED, g: tuple[int, str] = (1, "a"), h: Any = None, i: list = [],
         j: Optional[list[str]] = None, k: Union[list[int], Literal[1]] = 1, m: Union[list, tuple, None] = None):
    """Does many things.
    Args:
      a: one
      b: two (choices: ["p", "q "])
      c: three

         blank above
      d: four
      e: five
      f: six
      g: seven
      h: eight
      i: nine
      j: ten
      k: eleven
      m: twelve
    """


def bare():
    """No arguments"""


def nested(x: int | None, y: list[list[int]] | str = "") -> dict:
    """X

    Args:
        x: the x
            sub: nested
        y: the y
    Returns:
        a dict
    """


def returns_own(x: bool) -> Own:
    """Gives something that has no schema.

    Args:
        x: whether
    """


class Game:
    def guess(self, word: str) -> str:
        """Guess a word.

        Args:
            word: The word, e.g.: crane.
        """

    async def later(self, flag: bool) -> "Color":
        """Later.

        Args:
            flag: a flag
        """


@pytest.mark.parametrize("function", [add, many, bare, nested, returns_own, Game().guess, Game().later, Game.guess],
                         ids=lambda one: one.__qualname__)
def test_a_tool_has_the_schema_of_transformers(function):
    assert ours.tool_schema(function) == get_json_schema(function)


def no_docstring(a: int):
    pass


def no_hint(a):
    """No hint.

    Args:
        a: the a
    """


def no_description(a: int):
    """No description."""


def own_type(a: Own):
    """Own type.

    Args:
        a: the a
    """


def open_tuple(a: tuple[int, ...]):
    """Open tuple.

    Args:
        a: the a
    """


@pytest.mark.parametrize("function", [no_docstring, no_hint, no_description, own_type, open_tuple],
                         ids=lambda one: one.__name__)
def test_what_transformers_refuses_is_refused_with_its_place(function):
    with pytest.raises(Exception):
        get_json_schema(function)
    with pytest.raises(ours.NoTool) as refused:
        ours.tool_schema(function)
    line = function.__code__.co_firstlineno
    assert str(refused.value).startswith(f"{__file__}:{line}: the method {function.__name__} cannot be a tool: ")
