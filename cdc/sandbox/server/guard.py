"""Runs a program for ``process.Process``, and kills the program when the process that started the guard (the starter)
has ended.

The guard is run as ``python guard.py MODE LOCK_FD LOG_FD COMMAND…``, and prints the program's pid on one line. With the
mode "bound" the guard stays as the program's parent. It kills the program and the program's children when its own
standard input ends. The kernel closes this input whenever the starter ends, for whatever reason. With the mode "free"
the guard ends at once, and the program continues.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys

_PR_SET_PDEATHSIG = 1  # prctl(2)


def main(arguments: list[str]) -> int:
    """Starts the command. In the mode "bound", waits for the command's end and returns its exit status; the status is
    negative if a signal ended the command. In the mode "free", returns 0 at once.
    """
    mode, lock, log, *command = arguments
    guard = os.getpid()
    pid = os.fork()
    if pid == 0:
        if mode == "bound":
            _die_with(guard)
        _become(command, log=int(log))
    # The program has its own process group, so that it can be killed together with its children. Both parent and child
    # create the group, because either may run first.
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)
    # Only the program may hold the lock, because other processes use the lock to check whether the program is running.
    os.close(int(lock))
    os.close(int(log))
    os.write(sys.stdout.fileno(), f"{pid}\n".encode())
    return _watch(pid) if mode == "bound" else 0


def _die_with(guard: int) -> None:
    # If the guard itself is killed, the kernel also kills the program.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(1)  # the guard was killed before prctl was called


def _become(command: list[str], *, log: int) -> None:
    os.setpgid(0, 0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"cannot run {command[0]}: {error}\n".encode())
        os._exit(127)


def _watch(pid: int) -> int:
    program = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(program, select.POLLIN)
    poll.register(0, select.POLLIN | select.POLLHUP)
    if program not in dict(poll.poll()):
        os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    # The guard ignores Ctrl-C, because the starter handles it and stops its programs in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(main(sys.argv[1:]))
