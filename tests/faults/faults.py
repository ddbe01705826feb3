"""How each kind of fault strikes a run. A strike returns what it did, in words; None when the run was
over before."""

import contextlib
import os
import signal
import threading
import time

# Processes that lost their head end within a minute; the rest is for a machine with much to do.
ORPHANS_S = 75
SAID = "fails as TROUPE_FAULTS says"


def strike_all(stage):
    """All faults of the plan, at the same time; what each did, by place. Returns when all are over."""
    done = [None] * len(stage.plan.faults)

    def one(place, fault):
        try:
            if await_moment(stage, fault):
                done[place] = STRIKES[fault.kind](stage, fault)
        except OSError as problem:
            stage.bad.append(f"the campaign could not do '{fault.kind}': {problem}")
        finally:
            if fault.kind == "disk":
                stage.disk_is_free.set()

    threads = [threading.Thread(target=one, args=each)
               for each in enumerate(stage.plan.faults)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def await_moment(stage, fault):
    if fault.at == 0:
        stage.company.find(fault.more.get("who", "head"), 10)
    elif not stage.await_steps(fault.at):
        return False
    time.sleep(fault.after_s)
    return not stage.over()


def send(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False


def kill(stage, fault):
    who = fault.more["who"]
    pid = stage.company.find(who)
    if pid is None or not send(pid, signal.SIGKILL):
        return None
    if who in stage.far:
        stage.far[who].wait()
        time.sleep(0.5)
        stage.start_far(who)
    return f"killed {who}"


def freeze(stage, fault):
    who, seconds = fault.more["who"], fault.more["for_s"]
    pid = stage.company.find(who)
    if pid is None or not send(pid, signal.SIGSTOP):
        return None
    if seconds:
        time.sleep(seconds)
        send(pid, signal.SIGCONT)
    return f"froze {who}"


def error(stage, _):
    """The program does it by itself; see `errors_came`."""
    return "ordered errors"


def slow(stage, fault):
    stage.wire.order(f"rate {fault.more['mbit'] * 125000}")
    time.sleep(fault.more["for_s"])
    stage.wire.order("rate 0")
    return "slowed the link"


def cut(stage, fault):
    stage.wire.order(f"cut {fault.more['towards']}")
    time.sleep(fault.more["for_s"])
    stage.wire.order("heal")
    return "cut the link"


def flap(stage, fault):
    for _ in range(fault.more["times"]):
        for direction in ("head", "node"):
            stage.wire.order(f"cut {direction}")
        if fault.more["how"] == "reset":
            stage.wire.order("reset")
        time.sleep(fault.more["down_s"])
        stage.wire.order("heal")
        time.sleep(fault.more["up_s"])
    return "flapped the link"


def disk(stage, fault):
    stage.disk.fill()
    end = time.monotonic() + fault.more["for_s"]
    while time.monotonic() < end:
        time.sleep(0.1)
        stage.disk.fill()  # what a checkpoint freed meanwhile
    stage.disk.free()
    return "filled the disk"


def head_killed(stage, fault):
    stage.company.kill_head()
    time.sleep(fault.more["pause_s"])
    give_command_again(stage)
    return "killed the head"


def head_gone(stage, _):
    """Nobody gives the command again; the head's own processes end by themselves."""
    stage.company.kill_head()
    left = stage.company.leftovers(ORPHANS_S, but_for=(*stage.far, "attach", ""))
    if left:
        stage.bad.append(f"{', '.join(left)} outlived a head that was gone")
    give_command_again(stage)
    return "killed the head for good"


def give_command_again(stage):
    stage.disk_is_free.wait()  # a run does not start on a full disk
    stage.company.start()


def head_frozen(stage, fault):
    pid = stage.company.process.pid
    if stage.company.process.poll() is not None or not send(pid, signal.SIGSTOP):
        return None
    time.sleep(fault.more["for_s"])
    send(pid, signal.SIGCONT)
    return "froze the head"


STRIKES = {"kill": kill, "freeze": freeze, "error": error, "slow": slow, "cut": cut, "flap": flap,
           "disk": disk, "head killed": head_killed, "head gone": head_gone,
           "head frozen": head_frozen}


def errors_came(stage):
    """How many lines of the log tell of an error that was ordered."""
    return sum(SAID in line for _, line in stage.company.log())
