"""The pass over many partitions on all processors: this process reads some of them, and others that it starts the rest.

    facts = follow(partitions, cluster, Asked.EVERYTHING, advance=advance)

Threads would not do: most of the time that a partition takes is Python's. Where this process has a single thread, the
others are its forks. A fork would inherit the locks of other threads, so beside such a new Python starts, which takes
0.4 s. It imports no `__main__`: a script needs no guard, and a notebook has none. No process starts where it would take
longer than it saves. One whose starter is gone ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ..disk.files import FILE_COST, file_size
from ..disk.names import file_name, is_url
from ..errors import DataDirectoryError
from ..threads import start_thread
from ..view.parallel_scan import processor_count, processors
from ..view.walk import Advance
from .cluster import Cluster
from .partition import Partition
from .verify import Asked, PartitionFacts, verify_partition

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

FORK_COST, START_COST = 128 * 2**20, 512 * 2**20  # what a fork, or a new Python, has to read to be worth its start
_GROUP_COUNT = 4  # a process takes its share in so many groups and more, so that none waits long for the last
_ADVANCE_SIZE = 2**20  # bytes that a process reads before it tells of them
_PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from logstore.audit.processes import main; main(int(sys.argv[1]))"


class _Share(NamedTuple):
    """A partition, and the processors that it gets: as its bytes are to those of all."""

    partition: Partition
    processor_count: int


Group = list[_Share]


class Task(NamedTuple):
    """What is asked of each partition; arguments of `verify_partition`."""

    cluster: Cluster
    asked: Asked
    decodes: bool

    def facts(self, partition: Partition, advance: Advance = lambda size: None) -> PartitionFacts:
        """Read a partition."""
        return verify_partition(partition, self.cluster, self.asked, decodes=self.decodes, advance=advance)

    def facts_without_cluster(self, partition: Partition, advance: Advance = lambda size: None) -> PartitionFacts:
        """Read a partition for another process, which has the cluster and need not be sent it."""
        facts = self.facts(partition, advance)
        facts.evidence.cluster = Cluster(self.cluster.root)
        return facts


def follow(
    partitions: Sequence[Partition],
    cluster: Cluster,
    asked: Asked,
    *,
    decodes: bool = True,
    advance: Advance = lambda size: None,
) -> list[PartitionFacts]:
    """Return the facts of all partitions, in their order; arguments as of `verify_partition`.

    Raises DataDirectoryError if one of the other processes was killed.
    """
    _ = cluster.image  # a cached property: read it here once, not in every process
    task = Task(cluster, asked, decodes)
    costs = _costs(partitions) if len(partitions) > 1 and processor_count() > 1 else []
    is_forked = sys.platform == "linux" and threading.active_count() == 1
    count = min(sum(costs) // (FORK_COST if is_forked else START_COST), processor_count() - 1, len(partitions) - 1)
    if not (is_forked or _is_python(sys.executable)):
        count = 0
    with ExitStack() as stack:
        processes = list[_Process]()
        with suppress(OSError):  # where the system starts no more, those that it started have more to do
            for _ in range(count):
                processes.append(_Process.fork(processes) if is_forked else _Process.start())
                stack.callback(processes[-1].end)
        if not processes:
            return [task.facts(one, advance) for one in partitions]
        found = _Shares(partitions, costs, task, processes, advance).read()
    return [found[one.files.path] for one in partitions]


def _costs(partitions: Sequence[Partition]) -> list[int]:
    """Return the bytes of each partition's logs, with what its files take; none of an object store.

    Reading from there waits for the network, not for a processor.
    """
    if any(is_url(one.files.path) for one in partitions):
        return []
    return [FILE_COST + sum(file_size(each.log) + 4 * FILE_COST for each in one.files.segments) for one in partitions]


def _is_python(executable: str | None) -> bool:
    """Return whether a program starts as a Python: in others, such as one that PyInstaller made, it is that program."""
    return executable is not None and file_name(executable).lower().startswith("python") and not hasattr(sys, "frozen")


class _Lost(NamedTuple):
    """A process that ended before it answered a group."""

    process: _Process
    group: Group


class _FailedElsewhere(Exception):
    """The error of another process; nobody takes it for that of the partition which is read here meanwhile."""

    def __init__(self, error: Exception) -> None:
        self.error = error


Answer = int | list[PartitionFacts] | Exception | _Lost  # bytes that were read; the facts of a group, or why not


class _Shares:
    """Partitions that this process and others read, dear ones first."""

    def __init__(
        self,
        partitions: Sequence[Partition],
        costs: Sequence[int],
        task: Task,
        processes: Sequence[_Process],
        advance: Advance,
    ) -> None:
        self._cost, count = sum(costs), processor_count()
        by_cost = sorted(zip(costs, partitions, strict=True), key=lambda one: one[0], reverse=True)
        self._waiting = deque((cost, _Share(one, max(1, round(count * cost / self._cost)))) for cost, one in by_cost)
        self._task, self._processes, self._advance = task, processes, advance
        self._lock = threading.Lock()
        self._asked_count = 0  # groups that another process has not answered
        self._events: SimpleQueue[Answer] = SimpleQueue()
        self._found: dict[str, PartitionFacts] = {}

    def read(self) -> dict[str, PartitionFacts]:
        """Return the facts of each partition, by its path."""
        for process in self._processes:
            process.answer(self._ask)
        try:
            while group := self._take():
                for partition, count in group:
                    with processors(count):
                        self._found[partition.files.path] = self._task.facts(partition, self._note_read)
            while self._asked_count:
                self._note(self._events.get())
        except _FailedElsewhere as failed:
            raise failed.error from None
        return self._found

    def _take(self, asked_count: int = 0) -> Group:
        with self._lock:
            group, room = Group(), self._cost // ((len(self._processes) + 1) * _GROUP_COUNT)
            while True:
                if not self._waiting or (group and room <= 0):
                    break
                cost, share = self._waiting.popleft()
                self._cost, room = self._cost - cost, room - cost
                group.append(share)
            self._asked_count += asked_count if group else 0
            return group

    def _ask(self, process: _Process) -> None:
        """Let a process read groups until there are no more; called in a thread of its own."""
        connection, group = process.connection, Group()
        try:
            connection.send(self._task)
            connection.recv()  # it has started; one that cannot is not missed
            while group := self._take(1):
                connection.send(group)
                while True:
                    self._events.put(answer := connection.recv())
                    if not isinstance(answer, int):
                        break
        except (EOFError, OSError):
            if group:
                self._events.put(_Lost(process, group))
        except Exception as error:
            self._events.put(error)

    def _note_read(self, size: int) -> None:
        """Note what this process has read, and what others have told; callers are told of both in their own thread."""
        self._advance(size)
        while not self._events.empty():
            self._note(self._events.get())

    def _note(self, answer: Answer) -> None:
        if isinstance(answer, int):
            self._advance(answer)
        elif isinstance(answer, Exception):
            raise _FailedElsewhere(answer)
        elif isinstance(answer, _Lost):
            raise _FailedElsewhere(answer.process.lost(answer.group))
        else:
            with self._lock:
                self._asked_count -= 1
            for facts in answer:
                facts.evidence.cluster = self._task.cluster
                self._found[facts.partition.files.path] = facts


class _Process:
    """A process that reads partitions for this one."""

    def __init__(self, connection: Connection, process_id: int, popen: subprocess.Popen[bytes] | None) -> None:
        self.connection, self._process_id, self._popen = connection, process_id, popen
        self._code: int | None = None  # as of `subprocess.Popen`
        self._thread: threading.Thread | None = None

    @classmethod
    def fork(cls, others: Sequence[_Process]) -> _Process:
        """Start a fork of this process, which has one thread."""
        from multiprocessing.connection import Pipe

        ours, theirs = Pipe()
        process_id = os.fork()
        if process_id == 0:
            try:
                for connection in (ours, *(one.connection for one in others)):
                    connection.close()
                _serve(theirs)
            finally:
                os._exit(1)  # nothing of the program that was forked may run on
        theirs.close()
        return cls(ours, process_id, None)

    @classmethod
    def start(cls) -> _Process:
        """Start a new Python that finds modules where this one does."""
        from multiprocessing.connection import Pipe

        ours, theirs = Pipe()
        with theirs:
            descriptor = theirs.fileno()
            popen = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(descriptor), *sys.path],
                pass_fds=[descriptor],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for this process, which ends the others
            )
        return cls(ours, popen.pid, popen)

    def answer(self, ask: Callable[[_Process], None]) -> None:
        """Call `ask` in a thread of its own."""
        self._thread = threading.Thread(target=ask, args=(self,), daemon=True)
        start_thread(self._thread)

    def lost(self, group: Group) -> DataDirectoryError:
        """Return the error of a process that ended before it answered."""
        code = self._wait()
        how = f"was killed by signal {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return DataDirectoryError(
            f"a process that read partitions {how}",
            path=group[0].partition.files.path,
            found=f"{len(group)} partitions that were not read to their ends",
            advice="is there enough memory? `taskset -c 0` lets one process read all",
        )

    def end(self) -> None:
        """Kill the process, and wait for its end."""
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self._process_id, signal.SIGKILL)
            self._wait()
        if self._thread is not None:
            self._thread.join(timeout=30)  # its connection has ended, unless some other process inherited it
        self.connection.close()

    def _wait(self) -> int:
        if self._code is None and self._popen is not None:
            self._code = self._popen.wait()
        elif self._code is None:
            try:
                self._code = os.waitstatus_to_exitcode(os.waitpid(self._process_id, 0)[1])
            except ChildProcessError:  # the program has waited for all of its children
                self._code = 1
        return self._code


def main(descriptor: int) -> NoReturn:
    """Read partitions for the process that has the other end of a connection."""
    from multiprocessing.connection import Connection

    _serve(Connection(descriptor))


def _serve(connection: Connection) -> NoReturn:
    """Answer groups of partitions until the other process ends, or ends this one."""
    signal.set_wakeup_fd(-1)  # it may be that of a loop in the process that was forked
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for that process, which ends this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    requests: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(connection, requests.put), daemon=True).start()
    task: Task = requests.get()
    connection.send(0)
    unsaid = 0

    def advance(size: int) -> None:
        nonlocal unsaid
        unsaid += size
        if unsaid >= _ADVANCE_SIZE:
            connection.send(unsaid)
            unsaid = 0

    while True:
        group: Group = requests.get()
        facts = list[PartitionFacts]()
        answer: Answer = facts
        try:
            for partition, count in group:
                with processors(count):
                    facts.append(task.facts_without_cluster(partition, advance))
        except Exception as error:  # raised where it was asked
            answer = error
        connection.send(unsaid)
        unsaid = 0
        connection.send(answer)


def _listen(connection: Connection, put: Callable[[Any], None]) -> NoReturn:
    """Take what is asked; end this process, whatever it does, when the other one has gone."""
    try:
        while True:
            put(connection.recv())
    finally:
        os._exit(0)
