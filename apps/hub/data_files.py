# Which files of a data set's repository are its rows: by the configurations that its card lists, else by
# the names of folders and files, as the package `datasets` goes by them. Works on names alone.
import re

ROWS = (".parquet", ".arrow", ".jsonl", ".ndjson", ".json", ".csv")  # what Troupe's readers take
PACKED = ("", ".gz", ".zst")
SPLITS = {"train": ("train", "training"), "validation": ("validation", "valid", "dev", "val"),
          "test": ("test", "testing", "eval", "evaluation")}
SHARDED = re.compile(r"data/(?P<split>[^/]+)-\d{5}-of-\d{5}[^/]*\.[^/]*")
NO_ROWS = {"README.md", "config.json", "dataset_info.json", "dataset_infos.json", "dataset_dict.json",
           "dummy_data.zip"}
BREAK = r"[-._ 0-9]"


class NoSuchRows(Exception):
    """What is wrong, and what to do."""

    def __init__(self, what, advice):
        super().__init__(what)
        self.what, self.advice = what, advice


def listed(names, most=12):
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def has_rows(path):
    name = path.rsplit("/", 1)[-1]
    return name not in NO_ROWS and any(name.lower().endswith(rows + packed) for rows in ROWS for packed in PACKED)


def pattern_of(text):
    """A glob as a regular expression: * stays within a folder, ** as a whole part does not."""
    out, parts = "", text.strip("/").split("/")
    for at, part in enumerate(parts):
        last = at + 1 == len(parts)
        if part == "**":
            out += r".*" if last else r"(?:.*/)?"
            continue
        i = 0
        while i < len(part):
            end = part.find("]", i + 2) if part[i] == "[" else -1
            if part[i] == "*":
                out += r"[^/]*"
                while part[i : i + 2] == "**":
                    i += 1
            elif part[i] == "?":
                out += r"[^/]"
            elif end > 0:
                inner = part[i + 1 : end]
                inner = "^" + inner[1:] if inner[0] == "!" else inner
                out += "[" + inner.replace("\\", "\\\\").replace("[", "\\[") + "]"
                i = end
            else:
                out += re.escape(part[i])
            i += 1
        out += "" if last else "/"
    return re.compile(out)


def unasked(path, pattern):
    """Whether a hidden or special part of the path is one that the pattern does not name."""
    def count(text, prefix, parts):
        return sum(1 for part in text.split("/")[:parts] if part.startswith(prefix) and part != ".")
    return (count(path, ".", None) != count(pattern, ".", None)
            or count(path, "__", -1) != count(pattern, "__", -1))


def matching(paths, patterns, base=""):
    found = []
    for text in patterns:
        full = (base.strip("/") + "/" if base.strip("/") else "") + re.sub(r"^(\./)+", "", text)
        known = pattern_of(full)
        for path in paths:
            if known.fullmatch(path) and not unasked(path, full) and path not in found:
                found.append(path)
    return found


def by_convention(paths, base=""):
    """{split: files} from names alone; {} without files."""
    base = base.strip("/") + "/" if base.strip("/") else ""
    inner = {path[len(base):]: path for path in paths if path.startswith(base)}
    inner = {name: path for name, path in inner.items() if not unasked(name, "x")}
    sharded = {}
    for name, path in inner.items():
        shard = SHARDED.fullmatch(name)
        if shard:
            sharded.setdefault(shard["split"], []).append(path)
    if sharded:
        return ordered(sharded)
    folder = {split: re.compile(rf"(?:.*/)?(?:[^/]*{BREAK})?(?:{'|'.join(words)})(?:{BREAK}[^/]*)?/.*")
              for split, words in SPLITS.items()}
    file = {split: re.compile(rf"(?:.*/)?(?:[^/]*{BREAK})?(?:{'|'.join(words)}){BREAK}[^/]*")
            for split, words in SPLITS.items()}
    for known in (folder, file):
        found = {split: [path for name, path in inner.items() if pattern.fullmatch(name)]
                 for split, pattern in known.items()}
        found = {split: files for split, files in found.items() if files}
        if found:
            return ordered(found)
    return {"train": sorted(inner.values())} if inner else {}


def ordered(found):
    names = [split for split in SPLITS if split in found] + sorted(set(found) - set(SPLITS))
    return {split: sorted(found[split]) for split in names}


def one_format(files):
    """Rows stored twice, as Parquet and as lines, are taken once."""
    for rows in ROWS:
        same = [path for path in files if any(path.lower().endswith(rows + packed) for packed in PACKED)]
        if same:
            return same
    return files


def front_matter(card):
    """The YAML at the head of a card; {} without one."""
    lines = card.splitlines()
    if not lines or lines[0].strip() != "---":
        return {}
    try:
        end = next(at for at, line in enumerate(lines[1:], 1) if line.strip() == "---")
    except StopIteration:
        return {}
    import yaml
    try:
        found = yaml.safe_load("\n".join(lines[1:end]))
    except yaml.YAMLError as error:
        raise NoSuchRows("its card (README.md) is no YAML: " + " ".join(str(error).split())[:200],
                         "name a file of it instead") from None
    return found if isinstance(found, dict) else {}


def configurations(card):
    """{name: its entry} of the card's `configs`."""
    entries = front_matter(card).get("configs") or []
    good = isinstance(entries, list) and all(
        isinstance(one, dict) and isinstance(one.get("config_name"), str) for one in entries)
    if not good:
        raise NoSuchRows("the `configs` of its card (README.md) are no list of names and files",
                         "name a file of it instead")
    return {one["config_name"]: one for one in entries}


def texts(value):
    values = value if isinstance(value, list) else [value]
    return values if values and all(isinstance(one, str) for one in values) else None


def splits_of(entry, paths):
    """{split: files} of a configuration of the card."""
    base = entry.get("data_dir") or ""
    wanted = entry.get("data_files")
    if wanted is None:
        return by_convention(paths, base)
    if texts(wanted):
        patterns = {"train": texts(wanted)}
    elif isinstance(wanted, dict):
        patterns = {str(split): texts(files) for split, files in wanted.items()}
    elif isinstance(wanted, list) and all(isinstance(one, dict) for one in wanted):
        patterns = {str(one.get("split")): texts(one.get("path")) for one in wanted}
    else:
        patterns = {"": None}
    if not all(patterns.values()):
        raise NoSuchRows(f"data_files of its configuration '{entry['config_name']}' are no names of files",
                         "name a file of it instead")
    return {split: matching(paths, some, base) for split, some in patterns.items()}


def default_configuration(known):
    marked = [name for name, entry in known.items()
              if len(known) == 1 or name == "default" or entry.get("default")]
    return marked[0] if len(marked) == 1 else None


def top_folders(paths):
    return sorted({path.split("/")[0] for path in paths if "/" in path})


def choose(paths, card, first=None, second=None):
    """(configuration, split, files) of NAME[:first][:second]. A single part is a configuration where there
    is one of that name, else a split."""
    rows = sorted(path for path in paths if has_rows(path))
    if not rows:
        kinds = sorted({"." + path.rsplit(".", 1)[1] for path in paths
                        if "." in path.rsplit("/", 1)[-1][1:] and path not in NO_ROWS})
        scripts = [path for path in paths if path.endswith(".py") and "/" not in path]
        why = f"it is made by the program {scripts[0]}, which is not run" if scripts else (
            "it holds " + (f"{listed(kinds)} files" if kinds else "no files"))
        raise NoSuchRows(f"no file of rows ({', '.join(ROWS)}) is in it: {why}", "choose another data set")
    known = configurations(card)
    config, split = first or None, second or None
    if config and not split and config not in known and not folder_named(config, known, rows):
        config, split = None, config
    if known:
        if config is None:
            config = default_configuration(known)
            if config is None:
                raise NoSuchRows(f"it has {len(known)} configurations and none by default: "
                                 + listed(known), "append one: NAME:CONFIG or NAME:CONFIG:SPLIT")
        if config not in known:
            raise NoSuchRows(f"it has no configuration '{config}'; it has " + listed(known),
                             "append one of them: NAME:CONFIG or NAME:CONFIG:SPLIT")
        found = splits_of(known[config], rows)
    elif config and config != "default":
        if not folder_named(config, known, rows):
            raise NoSuchRows(f"it has no configuration '{config}': its card lists none, and it has no "
                             "folder of that name" + (f" ({listed(top_folders(rows))})"
                                                      if top_folders(rows) else ""),
                             "leave it out, or name a folder")
        found = by_convention(rows, config)
    else:
        found = by_convention(rows)
    found = {name: one_format(files) for name, files in found.items() if files}
    if not found:
        raise NoSuchRows(f"its configuration '{config}' names no file of rows that is there",
                         "name another configuration")
    if split is None:
        if "train" not in found and len(found) > 1:
            raise NoSuchRows("it has no split 'train'; it has " + listed(found),
                             "append one: NAME:SPLIT or NAME:CONFIG:SPLIT")
        split = "train" if "train" in found else next(iter(found))
    if split not in found:
        also = f"; its configurations are {listed(known)}" if known else ""
        raise NoSuchRows(f"it has no split '{split}'; it has {listed(found)}{also}",
                         "append one of them: NAME:SPLIT or NAME:CONFIG:SPLIT")
    return config or "default", split, found[split]


def folder_named(config, known, rows):
    return not known and config in top_folders(rows) and config not in SPLITS and config != "data"
