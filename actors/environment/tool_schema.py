# Describes a function as a tool: the JSON schema of its parameters from type hints, the descriptions
# from a Google-style docstring, as `transformers.utils.get_json_schema` does.
import enum
import inspect
import json
import re
import types
import typing

SCALARS = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
PLAIN = {**SCALARS, list: "array", tuple: "array", dict: "object"}


class NoTool(Exception):
    """A method that cannot be described; the text says why."""


def schema_of_values(values):
    if not values or any(type(value) not in SCALARS for value in values):
        raise NoTool("choices must be texts, numbers, booleans or None")
    kinds = list(dict.fromkeys(SCALARS[type(value)] for value in values))
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": values}


def schema_of_union(hints):
    kinds = [schema_of_hint(hint) for hint in hints if hint is not type(None)]
    if len(kinds) == 1:
        schema = kinds[0]
    elif all(kind.keys() == {"type"} and isinstance(kind["type"], str) for kind in kinds):
        names = sorted({kind["type"] for kind in kinds})
        schema = {"type": names[0] if len(names) == 1 else names}
    else:
        schema = {"anyOf": kinds}
    return {**schema, "nullable": True} if type(None) in hints else schema


def schema_of_hint(hint):
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is typing.Any:
        return {}
    if origin is None and isinstance(hint, type) and issubclass(hint, enum.Enum):
        return schema_of_values([member.value for member in hint])
    if origin is None and isinstance(hint, type) and hint in PLAIN:
        return {"type": PLAIN[hint]}
    if origin is typing.Union or origin is getattr(types, "UnionType", typing.Union):
        return schema_of_union(inner)
    if origin is typing.Literal:
        return schema_of_values(list(inner))
    if origin is list:
        return {"type": "array", "items": schema_of_hint(inner[0])} if inner else {"type": "array"}
    if origin is tuple and len(inner) > 1 and ... not in inner:
        return {"type": "array", "prefixItems": [schema_of_hint(one) for one in inner]}
    if origin is dict:
        rest = {"additionalProperties": schema_of_hint(inner[1])} if len(inner) == 2 else {}
        return {"type": "object", **rest}
    raise NoTool(f"the type hint {hint!r} has no JSON schema; use int, float, str, bool, Enum, Literal, or list, dict, "
                 "tuple and Union of those")


class Docstring:
    """The sections of a Google-style docstring: what the function does, each argument, what it returns."""

    def __init__(self, text):
        lines = text.strip().splitlines()
        heads = [i for i, line in enumerate(lines) if line.strip() in ("Args:", "Returns:", "Raises:")]
        self.main = "\n".join(lines[:heads[0] if heads else len(lines)]).strip()
        sections = {}
        for begin, end in zip(heads, heads[1:] + [len(lines)]):
            sections.setdefault(lines[begin].strip(), [line for line in lines[begin + 1:end]])
        self.arguments = self.entries([line for line in sections.get("Args:", []) if line.strip()])
        returned = sections.get("Returns:")
        self.returned = "\n".join(returned).strip() if returned is not None else None

    @staticmethod
    def entries(lines):
        """`name: text`, with lines that go on below; a name deeper than the last one belongs to its text."""
        found, depth = {}, None
        for line in lines:
            named = re.match(r"([ \t]*)(\w+):\s*(.*)", line)
            if named and (depth is None or not named[1].startswith(depth) or named[1] == depth):
                depth, name = named[1], named[2]
                found[name] = [named[3].strip()]
            elif found:
                found[name].append(line.strip())
        return {name: " ".join(part for part in text if part) for name, text in found.items()}


def described(schema, text):
    """The schema with a description; `(choices: [...])` at its end is an enum."""
    choices = re.search(r"\(choices:\s*(.*?)\)\s*$", text, flags=re.IGNORECASE)
    if choices:
        values = json.loads(choices[1])
        schema["enum"] = [value.strip() if isinstance(value, str) else value for value in values]
        text = text[:choices.start()].strip()
    schema["description"] = text
    return schema


def tool_schema(function):
    name = getattr(function, "__name__", "operation")
    code = getattr(inspect.unwrap(function), "__code__", None)
    where = f"{code.co_filename}:{code.co_firstlineno}: " if code else ""
    try:
        return schema_of_function(function, name)
    except (NoTool, NameError, ValueError) as error:
        raise NoTool(f"{where}the method {name} cannot be a tool: {error}") from None


def schema_of_function(function, name):
    text = inspect.getdoc(function)
    if not text or not text.strip():
        raise NoTool("it has no docstring; write what it does and its arguments, or begin its name with _")
    told, hints = Docstring(text), typing.get_type_hints(function)
    parameters = dict(inspect.signature(function).parameters)
    first = next(iter(parameters), None)
    if first in ("self", "cls") and parameters[first].annotation is inspect.Parameter.empty:
        del parameters[first]
    properties, required = {}, []
    for argument, parameter in parameters.items():
        if parameter.annotation is inspect.Parameter.empty:
            raise NoTool(f"its argument {argument} has no type hint")
        if argument not in told.arguments:
            raise NoTool(f"its docstring has no `{argument}: ...` under `Args:`")
        properties[argument] = described(schema_of_hint(hints[argument]), told.arguments[argument])
        if parameter.default is inspect.Parameter.empty:
            required.append(argument)
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    described_function = {"name": name, "description": told.main, "parameters": schema}
    if "return" in hints:
        try:
            returned = schema_of_hint(hints["return"])
        except NoTool:
            pass
        else:
            if told.returned is not None:
                returned["description"] = told.returned
            described_function["return"] = returned
    return {"type": "function", "function": described_function}


