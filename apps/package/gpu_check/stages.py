"""The stages of a check: what each runs, and for how long. Figures come before long tests: a figure is what the
project lacks."""
import concurrent.futures
import os
import shutil
import subprocess

from peak_memory import PeakMemory

# In this order, with the seconds that each may take; the first command of ten minutes does the first six. Tests run
# several at a time.
ORDER = (0, 1, 2, 5, 3, 6, 4, 7, 8, 9)
CAPS = {0: 30, 1: 30, 2: 90, 3: 90, 4: 140, 5: 150, 6: 180, 7: 220, 8: 240, 9: 420}
NAMES = {0: "facts", 1: "smoke", 2: "kernels", 3: "rooms", 4: "threads and tokens", 5: "speed of kernels", 6: "speed of models",
         7: "compute-sanitizer", 8: "profiles", 9: "a real run"}

ROOMS = (("test_model", "*Device*"), ("test_engine", "*OnDevice*:*DeviceExactness*"), ("test_learn", "*Device*"),
         ("test_weights", "DeviceChannel.*"))
DTYPES = ("f32", "bf16", "bf16-compute")
# Products of a model of 0.5B and one of 8B: columns, inner size.
PRODUCTS = ((9728, 896), (896, 4864), (28672, 4096), (4096, 14336))
ROWS = "1,8,64,256,2048,8192"
# Shape, sequences that decode, tokens of each, parameters of AdamW: what torch_figures.py measures, too.
OTHER_KERNELS = (("llama3-8b", 64, 1024, 1 << 28), ("llama3-8b", 256, 1024, 1 << 20), ("llama3-8b", 8, 4096, 1 << 20),
                 ("llama3-8b", 1, 8192, 1 << 20), ("qwen2.5-0.5b", 256, 1024, 1 << 20))


class Stages:
    """`small`: sizes for an emulated device. `models`: a folder for random models."""

    def __init__(self, runner, here, models, small, model=""):
        self.runner, self.here, self.models, self.small, self.model = runner, here, models, small, model
        self.torch = {}

    def run(self, number):
        getattr(self, f"stage{number}")()

    # ---- parts of stages

    def troupe(self, stage, item, words, limit, figures=False, environment=None):
        command, own = self.runner.launch("troupe")
        return self.runner.run(stage, item, [*command, *words], limit, {**own, **(environment or {})}, figures)

    def tool(self, stage, item, words, limit, figures=False, environment=None, needs=None):
        """A program of the machine, which `needs` another; absent where it has none."""
        paths = {name: shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
                 for name in (words[0], needs or words[0])}
        for name, path in paths.items():
            if path is None:
                self.runner.report.add(stage, item, "absent", why=f"{name} is not on this machine")
                return "absent", ""
        return self.runner.run(stage, item, [paths[words[0]], *words[1:]], limit, environment, figures)

    def beside(self, stage, name, limit):
        """The same with PyTorch, where python3 has one that sees a GPU."""
        if not self.has_torch("cuda"):
            self.runner.report.add(stage, f"torch.{name}", "absent", why="python3 has no torch that sees a GPU")
            return
        self.tool(stage, f"torch.{name}", ["python3", os.path.join(self.here, "torch_figures.py"), name], limit,
                  figures=True)

    def has_torch(self, what="version"):
        """Whether python3 has PyTorch; `cuda`: one that sees a GPU."""
        if what not in self.torch:
            program = "import sys, torch; sys.exit(sys.argv[1] == 'cuda' and not torch.cuda.is_available())"
            try:
                asked = subprocess.run(["python3", "-c", program, what], capture_output=True, timeout=60, check=False)
                self.torch[what] = asked.returncode == 0
            except (OSError, subprocess.TimeoutExpired):
                self.torch[what] = False
        return self.torch[what]

    def random_model(self, stage, shape, layers):
        """The folder of a random model, made where it is missing; None when that failed."""
        folder = os.path.join(self.models, f"{shape}-{layers}")
        if os.path.exists(os.path.join(folder, "config.json")):
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        words = ["model", "random", "--shape", shape, "--out", folder] + (["--layers", layers] if layers else [])
        state, _ = self.troupe(stage, f"model.{shape}.{layers}", words, 120)
        return folder if state == "passed" else None

    # ---- stages

    def stage0(self):
        library = os.environ.get("TROUPE_CUDA_LIBRARY", "libtroupe_cuda.so")
        for item, words in (("nvidia-smi", ["nvidia-smi", "-q"]), ("uname", ["uname", "-a"]), ("df", ["df", "-h"]),
                            ("free", ["free", "-g"]), ("lscpu", ["lscpu"]), ("ldd", ["ldd", library]),
                            ("cuobjdump", ["cuobjdump", "--list-elf", library])):
            self.tool(0, item, words, 15)
        if self.has_torch():
            self.tool(0, "torch", ["python3", "-c", "import torch; print(torch.__version__, torch.version.cuda)"], 60)
        else:
            self.runner.report.add(0, "torch", "absent", why="python3 has no torch")
        self.troupe(0, "version", ["version"], 10)
        self.troupe(0, "doctor", ["doctor"], 15)

    def stage1(self):
        self.troupe(1, "gpus", ["doctor", "--gpus", "--json"], 20, figures=True)
        for suite in ("CudaDevice", "CudaPositions", "CudaGemm"):
            pattern = f"{suite}.*" if not self.small else f"{suite}.*Hand*:{suite}.*Copies*"
            self.runner.tests(1, "test_kernels_cuda", pattern, 15, 5)
        self.runner.tests(1, "test_weights", "DeviceChannel.*", 15, 5)

    def stage2(self):
        self.runner.tests(2, "test_kernels_cuda", "CudaRows*" if self.small else "*", 20, 5)

    def stage3(self):
        rooms = (("test_weights", "DeviceChannel.*"),) if self.small else ROOMS
        for program, pattern in rooms:
            self.runner.tests(3, program, pattern, 60, 15)
        pattern = "Gpu.GreedyAndSampled*" if self.small else "Gpu.*:GpuCommands.*:GpuRanks.*"
        library = os.environ.get("TROUPE_CUDA_LIBRARY", "")
        self.runner.tests(3, "test_integration", pattern, 90, 30, {"TROUPE_TEST_CUDA_LIBRARY": library})

    def stage4(self):
        self.runner.tests(4, "test_kernels_cuda", "CudaDevice.Threads*:CudaDevice.Nothing*", 20, 10)
        model = self.random_model(4, "tiny" if self.small else "smollm2-135m", 0 if self.small else 4)
        for dtype in DTYPES if model is not None else ():
            words = ["bench", "exact", "--device", "cuda", "--model", model, "--dtype", dtype, "--tokens",
                     200 if self.small else 100000, "--json"]
            self.troupe(4, f"exact.{dtype}", words, 60, figures=True)

    def stage5(self):
        for shape, batch, keys, parameters in (("tiny", 2, 20, 1000),) if self.small else OTHER_KERNELS:
            for dtype in ("bf16", "bf16-compute"):
                words = ["bench", "kernels", "--device", "cuda", "--shape", shape, "--dtype", dtype, "--batch", batch,
                         "--keys", keys, "--rows", 8 if self.small else 8192, "--parameters", parameters, "--json"]
                self.troupe(5, f"kernels.{shape}.{dtype}.{batch}x{keys}", words, 30, figures=True)
        products, rows = (((64, 64),), "1,2") if self.small else (PRODUCTS, ROWS)
        for dtype in DTYPES:
            for columns, depth in products:
                words = ["bench", "gemm", "--device", "cuda", "--dtype", dtype, "--m", rows, "--n", columns,
                         "--k", depth, "--json"]
                self.troupe(5, f"gemm.{dtype}.{columns}x{depth}", words, 30, figures=True)
        for name in ("matmul", "attention", "rows"):
            self.beside(5, name, 60)

    def stage6(self):
        shapes = (("tiny", 0),) if self.small else (("qwen2.5-0.5b", 0), ("llama3-8b", 4))
        dtypes = ("bf16",) if self.small else ("bf16", "bf16-compute")
        models = [(shape, self.random_model(6, shape, layers)) for shape, layers in shapes]
        if self.model:
            models.append((os.path.basename(os.path.abspath(self.model)), self.model))
        for name, model in models:
            if model is None:
                continue
            for dtype in dtypes:
                for batch in (1,) if self.small else (1, 8, 64, 256):
                    self.generate(f"decode.{name}.{dtype}.{batch}", model, dtype, batch, 8 if self.small else 1024, 64)
                if not self.small:
                    self.generate(f"decode8k.{name}.{dtype}.1", model, dtype, 1, 8192 - 128, 64)
                self.train(f"train.{name}.{dtype}.sft", model, "sft", dtype)
            if not self.small:
                self.train(f"train.{name}.bf16.grpo", model, "grpo", "bf16")
                self.train(f"train.{name}.bf16.lora", model, "sft", "bf16", "--lora", 16)
        self.beside(6, "models", 120)

    def train(self, item, model, objective, dtype, *more):
        sizes = (["--prompts", 1, "--new-tokens", 8, "--micro-tokens-max", 64] if self.small else
                 ["--prompts", 32, "--micro-tokens-max", 8192])
        words = ["bench", "train", "--device", "cuda", "--model", model, "--objective", objective, "--dtype", dtype,
                 *more, *sizes, "--json"]
        self.troupe(6, item, words, 90, figures=True)

    def generate(self, item, model, dtype, batch, prompt, tokens):
        words = ["bench", "generate", "--device", "cuda", "--model", model, "--dtype", dtype, "--batch", batch,
                 "--prompt-tokens", prompt, "--new-tokens", 4 if self.small else tokens, "--json",
                 *(["--no-limits"] if self.small else [])]
        self.troupe(6, item, words, 60, figures=True)

    def stage7(self):
        words, environment = self.runner.launch("test_kernels_cuda")
        pattern = "*Hand*" if self.small else "*Hand*:*Few*:CudaAttention.*:CudaDevice.*"
        suites, _ = self.runner.suites("test_kernels_cuda", pattern)

        # A process for each suite: after a fault nothing more runs in its process.
        def run(check, suite):
            chosen = ":".join(f"{suite}.{test}" for test in suites[suite])
            self.tool(7, f"{check}.{suite}", ["compute-sanitizer", "--tool", check, "--error-exitcode", "9", *words,
                                              f"--gtest_filter={chosen}"], 120, environment=environment)
        checks = ("memcheck", "racecheck", "synccheck", "initcheck")
        with concurrent.futures.ThreadPoolExecutor(self.runner.jobs) as pool:
            for done in [pool.submit(run, check, suite) for check in checks for suite in suites]:
                done.result()

    def stage8(self):
        """Where the time of a training step and of decode steps goes: every kernel timed by ncu, in a model with
        four layers."""
        model = self.random_model(8, "tiny" if self.small else "qwen2.5-0.5b", 0 if self.small else 4)
        if model is None:
            return
        troupe, environment = self.runner.launch("troupe")
        sizes = (["--prompts", 1, "--new-tokens", 8, "--micro-tokens-max", 64] if self.small else
                 ["--prompts", 32, "--micro-tokens-max", 8192])
        works = [(f"train.{dtype}", ["adamw", "train", "--objective", "sft", "--dtype", dtype, *sizes])
                 for dtype in ("bf16", "bf16-compute")]
        works += [(f"decode.{dtype}.{keys}", ["draw", "generate", "--batch", 1, "--prompt-tokens", keys,
                                              "--new-tokens", 16, "--no-limits", "--dtype", dtype])
                  for dtype in ("bf16", "bf16-compute") for keys in ((8,) if self.small else (1024, 8064))]
        for item, (mark, bench, *words) in works:
            self.tool(8, item, ["python3", os.path.join(self.here, "kernel_times.py"), mark, *troupe, "bench", bench,
                                "--device", "cuda", "--model", model, *words], 60, figures=True,
                      environment=environment, needs="ncu")

    def stage9(self):
        data = os.path.join(self.models, "arithmetic")
        if not os.path.exists(data):
            self.troupe(9, "data", ["data", "arithmetic", "--out", data], 20)
        model = self.model or self.random_model(9, "tiny" if self.small else "qwen2.5-0.5b", 0)
        for dtype in ("bf16",) if self.small else ("bf16", "bf16-compute"):
            self.run_grpo(f"grpo.{dtype}", model, data, "cuda", dtype, 2 if self.small else 100, 64, 150)
        if self.small:
            return
        # The demo's sizes on the GPU and on the processor.
        model = self.random_model(9, "smollm2-135m", 0)
        for device, updates in (("cuda", 20), ("cpu", 4)):
            self.run_grpo(f"demo.{device}", model, data, device, "bf16", updates, 4, 60)

    def run_grpo(self, item, model, data, device, dtype, updates, new_tokens, limit):
        """GRPO, then what it has to show; on a GPU with the most memory that was in use."""
        if model is None:
            return
        run = os.path.join(self.models, f"run-{item}")
        shutil.rmtree(run, ignore_errors=True)
        words = ["train", "ppo", "--run.path", run, "--actor.model_name_or_path", model,
                 "--data.prompt_dataset", os.path.join(data, "train.jsonl"), "--data.input_key", "prompt",
                 "--data.label_key", "answer", "--reward.rule", "regex", "--reward.rule_pattern", "[0-9]",
                 "--actor.device", device, "--rollout.device", device, "--actor.param_dtype", dtype,
                 "--data.prompt_max_len", 64, "--algo.kl.init_coef", 0, "--cluster.transport", "loopback",
                 "--train.max_steps", updates, "--rollout.batch_size", 2 if self.small else 16,
                 "--rollout.n_samples_per_prompt", 2 if self.small else 8,
                 "--rollout.max_new_tokens", 4 if self.small else new_tokens]
        with PeakMemory() as memory:
            state, _ = self.troupe(9, item, words, limit)
        if state != "passed":
            return
        self.tool(9, f"figures.{item}", ["python3", os.path.join(self.here, "run_figures.py"), run], 20, figures=True)
        if memory.mib is not None and device == "cuda":
            self.runner.report.add(9, f"memory.{item}", "passed", figures=[{"peak_mib": memory.mib}])
