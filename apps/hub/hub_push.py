# Uploads of models. Of hub_client.py.
import os
import threading


def pushed_files(folder):
    found = []
    for where, folders, files in os.walk(folder):
        folders[:] = [one for one in folders if one == "additional_chat_templates"]
        for one in files:
            path = os.path.relpath(os.path.join(where, one), folder)
            if PUSHED.fullmatch(path):
                found.append(path)
    return sorted(found)


def push(to):
    from huggingface_hub import HfApi, constants
    folder = to["folder"]
    files = pushed_files(folder)
    if not any(WEIGHTS.fullmatch(path) for path in files):
        raise Refusal("damaged", f"{folder} holds neither model.safetensors nor adapter_model.safetensors",
                      "name the folder of a model or of an adapter")
    for path in files:
        with open(os.path.join(folder, path), "rb") as file:
            if file.read(len(POINTER)) == POINTER:
                raise Refusal("damaged", f"{path} is a Git LFS pointer, not the file itself",
                              "run `git lfs pull` in its folder")
    card = to.get("card") or ""
    if card:
        files = sorted({*files, "README.md"})
    sizes = {path: len(card.encode()) if path == "README.md" and card
             else os.path.getsize(os.path.join(folder, path)) for path in files}
    tell(plan={"name": to["name"], "files": len(files), "bytes": sum(sizes.values()), "from": endpoint(),
               "listed": [[path, sizes[path]] for path in files], "private": to["private"]})
    if to["dry"]:
        tell(done={"name": to["name"], "commit": "", "folder": folder, "files": files})
        return
    wait_for_go()
    if constants.HF_HUB_OFFLINE:
        raise Refusal("offline", f"{to['name']} cannot be pushed: HF_HUB_OFFLINE is set", "unset it")
    from huggingface_hub import CommitOperationAdd
    api = HfApi(library_name="troupe", library_version=to.get("version"))
    api.create_repo(to["name"], repo_type="model", private=to["private"], exist_ok=True)
    working()
    adds = [CommitOperationAdd(path, card.encode() if path == "README.md" and card
                               else os.path.join(folder, path)) for path in files]
    over = threading.Event()

    def busy():  # an upload is one call of the client
        while not over.wait(1):
            working()

    threading.Thread(target=busy, daemon=True).start()
    try:
        made = api.create_commit(to["name"], adds, repo_type="model", commit_message=to["message"])
    finally:
        over.set()
    tell(done={"name": to["name"], "commit": made.oid, "folder": folder, "files": files,
               "url": str(made.commit_url or "")})
