# Reads a Python script that trains with TRL, and runs nothing of it: the settings that stand in it
# as literals. A job is {"file": path}; the answer {"configs": [{"name", "line"}], "settings":
# [{"name", "line", "values", "list", "unknown"}]}, or {"error", "line"}.
import ast

CONFIGS = ("SFTConfig", "DPOConfig", "GRPOConfig", "RLOOConfig", "KTOConfig", "RewardConfig", "ORPOConfig", "CPOConfig",
           "BCOConfig", "GKDConfig", "PRMConfig")
LORA = {"r": "lora_r", "target_modules": "lora_target_modules", "modules_to_save": "lora_modules_to_save",
        "task_type": "lora_task_type"}
BYTES_MAX = 1 << 20


class Script(ast.NodeVisitor):
    def __init__(self, tree):
        self.configs, self.settings, self.datasets = [], [], 0
        self.known = self.constants(tree)
        self.visit(tree)

    @staticmethod
    def constants(tree):
        """Names that the file sets once, outside functions, to something that stands there."""
        times, values = {}, {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                times[node.id] = times.get(node.id, 0) + 1
        for node in tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                try:
                    values[node.targets[0].id] = ast.literal_eval(node.value)
                except ValueError:
                    pass
        return {name: value for name, value in values.items() if times.get(name) == 1}

    def value_of(self, node):
        if isinstance(node, ast.Name) and node.id in self.known:
            return self.known[node.id], ""
        try:
            return ast.literal_eval(node), ""
        except ValueError:
            return None, ast.unparse(node)[:80]

    def put(self, name, node, value=None):
        unknown = ""
        if value is None:
            value, unknown = self.value_of(node)
        if isinstance(value, dict):
            unknown = unknown or ast.unparse(node)[:80]
        many = isinstance(value, (list, tuple, set))
        values = [unknown] if unknown else [self.word(one) for one in (value if many else [value])]
        self.settings.append({"name": name, "line": node.lineno, "list": many, "unknown": unknown, "values": values})

    @staticmethod
    def word(value):
        if value is None:
            return "null"
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    def visit_Call(self, call):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        owner = getattr(getattr(call.func, "value", None), "id", "") if isinstance(call.func, ast.Attribute) else ""
        if name in CONFIGS:
            self.configs.append({"name": name, "line": call.lineno})
            for word in call.keywords:
                self.put(word.arg or "**", word.value)
        elif name == "LoraConfig":
            self.put("use_peft", call, True)
            for word in call.keywords:
                self.put(LORA.get(word.arg, word.arg or "**"), word.value)
        elif name == "load_dataset" and call.args:
            self.dataset(call)
        elif name == "from_pretrained" and owner.startswith("AutoModel") and call.args:
            self.put("model_name_or_path", call.args[0])
        elif name.endswith("Trainer"):
            self.trainer(call)
        self.generic_visit(call)

    def dataset(self, call):
        self.datasets += 1
        if self.datasets > 1:
            self.settings.append({"name": "load_dataset", "line": call.lineno, "list": False,
                                  "values": [ast.unparse(call)[:80]], "unknown": "a further data set"})
            return
        self.put("dataset_name", call.args[0])
        if len(call.args) > 1:
            self.put("dataset_config", call.args[1])
        for word in call.keywords:
            if word.arg == "split":
                self.put("dataset_train_split", word.value)

    def trainer(self, call):
        words = {word.arg: word.value for word in call.keywords}
        model = words.get("model", call.args[0] if call.args else None)
        if model is not None and isinstance(self.value_of(model)[0], str):
            self.put("model_name_or_path", model)
        if "reward_funcs" in words:
            self.put("reward_funcs", words["reward_funcs"])


def main():
    path = json.loads(sys.argv[1])["file"]
    try:
        with open(path, "rb") as file:
            text = file.read(BYTES_MAX + 1)
        if len(text) > BYTES_MAX:
            return tell(error="is larger than 1 MiB", line=0)
        script = Script(ast.parse(text, path))
    except OSError as error:
        return tell(error=error.strerror, line=0)
    except SyntaxError as error:
        return tell(error=f"is no Python: {error.msg}", line=error.lineno or 0)
    except (ValueError, RecursionError, MemoryError) as error:
        return tell(error=f"is no Python: {error}", line=0)
    tell(configs=script.configs, settings=script.settings)


main()
