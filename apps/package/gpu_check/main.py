#!/usr/bin/env python3
"""gpu-check: every test and measurement that needs a GPU, in stages that cannot lose each other's results.

    gpu-check [--torch DIR] [--model FOLDER] [--out FOLDER] [--minutes N] [--stages 0,1,2] [--jobs N] [--resume]

Each item is a process of its own with its own limit; a line of JSON is on disk when it begins and when it ends
(started, then passed, failed, timeout, absent or skipped): OUT/lines.jsonl. What items print is in OUT/logs and, at
the end, in OUT/logs.tar.gz. --resume skips what an earlier command has passed. Runs from its package, or by `./dev
gpu-check` from a build. Needs python3 and nothing besides it; PyTorch is measured next to us where python3 has it.
Exit status: 0 all that ran passed, 1 something failed, 2 usage.
"""
import argparse
import os
import shutil
import sys
import tarfile
import tempfile

sys.dont_write_bytecode = True
from report import Report  # noqa: E402
from runner import Runner  # noqa: E402
from stages import CAPS, NAMES, ORDER, Stages  # noqa: E402

HERE = os.path.dirname(os.path.realpath(__file__))
PACKAGE = os.path.dirname(os.path.dirname(HERE))


def arguments():
    parser = argparse.ArgumentParser(prog="gpu-check", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", help="folder of LibTorch or of PyTorch's `torch` (default: python3's)")
    parser.add_argument("--model", default="", help="a model to measure, too")
    parser.add_argument("--out", default="gpu_check", help="folder for what is found (default: gpu_check)")
    parser.add_argument("--minutes", type=float, default=10, help="for all of it (default: 10)")
    parser.add_argument("--stages", help="numbers with commas between; default: those that fit into the time")
    parser.add_argument("--jobs", type=int, default=max(1, min(8, len(os.sched_getaffinity(0)) // 2)),
                        help="test programs at one time; measurements run alone (default: half of the cores, at most 8)")
    parser.add_argument("--resume", action="store_true", help="skip what has passed in --out before")
    parser.add_argument("--build", help="a build folder in place of the package")
    parser.add_argument("--small", action="store_true", help="sizes for an emulated device")
    args = parser.parse_args()
    if args.stages is not None:
        try:
            args.stages = [int(one) for one in args.stages.split(",")]
        except ValueError:
            parser.error(f"--stages {args.stages}: expected numbers with commas between")
        if unknown := [one for one in args.stages if one not in NAMES]:
            parser.error(f"--stages: there is no stage {unknown[0]}; there are 0 to {max(NAMES)}")
    return args


def plan(args):
    """The stages to run, in order, and a line for each."""
    if args.stages is not None:
        return args.stages
    chosen, seconds = [], 60 * args.minutes
    for stage in ORDER:
        if CAPS[stage] <= seconds or not chosen:
            chosen.append(stage)
            seconds -= CAPS[stage]
    return chosen


def launcher(args, programs):
    """How a program is started: by the package's launcher, which finds LibTorch, or straight from a build."""
    def launch(name):
        if args.build:
            path = os.path.join(args.build, name if name == "troupe" else os.path.join("bin", name))
            return [path], {"TROUPE_BUILD_DIR": os.path.abspath(args.build)}
        words = [os.path.join(PACKAGE, "troupe")] + (["--torch", args.torch] if args.torch else [])
        path = os.path.join(PACKAGE, "bin", "troupe") if name == "troupe" else os.path.join(programs, name)
        return words, {"TROUPE_PROGRAM": path, "TROUPE_BUILD_DIR": PACKAGE}
    return launch


def unpack(programs):
    archive = os.path.join(PACKAGE, "checks.tar.xz")
    try:
        with tarfile.open(archive) as checks:
            checks.extractall(programs)
        # `troupe bench` looks for it next to `troupe`.
        shutil.move(os.path.join(programs, "troupe-bench"), os.path.join(PACKAGE, "bin", "troupe-bench"))
    except OSError as error:
        print(f"gpu-check: the test programs cannot be unpacked: {error}", file=sys.stderr)


def main():
    args = arguments()
    report = Report(args.out, args.resume)
    scratch = tempfile.mkdtemp(prefix="gpu-check-")
    try:
        if not args.build:
            unpack(scratch)
            names = [os.path.join(PACKAGE, "lib", name) for name in ("libtroupe_cuda12.so", "libtroupe_cuda.so")]
            os.environ.setdefault("TROUPE_CUDA_LIBRARY", next(filter(os.path.exists, names), names[-1]))
        # An emulated device is slow, and the machine may be busy.
        runner = Runner(report, launcher(args, scratch), args.minutes, patience=10 if args.small else 1,
                        jobs=args.jobs)
        chosen = plan(args)
        for stage in chosen:
            print(f"gpu-check: stage {stage}, {NAMES[stage]}: at most {CAPS[stage]} s", file=sys.stderr)
        stages = Stages(runner, HERE, os.path.join(scratch, "models"), args.small, args.model)
        os.makedirs(os.path.join(scratch, "models"), exist_ok=True)
        end = runner.end
        for stage in chosen:
            runner.end = min(end, runner.end_of(CAPS[stage]))
            stages.run(stage)
            runner.end = end
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        report.pack()
    counts = ", ".join(f"{count} {state}" for state, count in report.counts.items() if count)
    print(f"gpu-check: {counts or 'nothing ran'}; {report.path}", file=sys.stderr)
    return 1 if report.counts["failed"] + report.counts["timeout"] else 0


if __name__ == "__main__":
    sys.exit(main())
