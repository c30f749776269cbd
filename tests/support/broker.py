"""A real Kafka broker (and its own controller, if settings name no other) on this machine, over one data directory."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.support.oracle import Oracle

CLUSTER_ID = "bG9nc3RvcmUtZ29sZGVuLQ"
START_SECONDS = 60
STOP_SECONDS = 60
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "num.network.threads": "1",
    "num.io.threads": "2",
    "background.threads": "2",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.index.size.max.bytes": "4096",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.cleaner.threads": "1",
}


def remote_storage(folder: Path, *, replication_factor: int = 1) -> dict[str, str]:
    """Settings of a broker that copies segments of topics with remote storage into `folder` (KIP-405)."""
    metadata_topic = "rlmm.config.remote.log.metadata.topic"
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "RemoteFolder",
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "remote.log.manager.task.interval.ms": "200",
        "rsm.config.dir": str(folder),
        f"{metadata_topic}.num.partitions": "2",
        f"{metadata_topic}.replication.factor": str(replication_factor),
    }


class Broker:
    """One broker over `directory`; its configuration and its log lie beside the directory, not in it."""

    def __init__(
        self,
        oracle: Oracle,
        directory: Path,
        settings: Mapping[str, str],
        features: list[str],
        *,
        is_formatted: bool = False,
        is_static: bool = False,
        jvm_options: Sequence[str] = (),
    ) -> None:
        """A new directory is formatted with these features; one that is formatted stays as it is.

        Settings and JVM are those of a broker that starts quickly; `settings` and `jvm_options` come last. A static
        quorum is named by the settings, a dynamic one by the directory.
        """
        self.oracle = oracle
        self.jvm_options = jvm_options
        self.process: subprocess.Popen[bytes] | None = None
        self.directory = directory
        self.config = directory.with_suffix(".properties")
        self.log = directory.with_suffix(".log")
        port, controller_port = free_ports(2)
        self.bootstrap = f"localhost:{port}"
        listeners = f"PLAINTEXT://localhost:{port}"
        is_controller = settings.get("process.roles") != "broker"
        if is_controller:
            listeners += f",CONTROLLER://localhost:{controller_port}"
        self.quorum = (
            {"controller.quorum.voters": f"1@localhost:{controller_port}"}
            if is_static
            else {"controller.quorum.bootstrap.servers": f"localhost:{controller_port}"}
        )
        all_settings = {**SETTINGS, **self.quorum, "listeners": listeners, "log.dirs": str(directory), **settings}
        self.config.write_text("".join(f"{name}={value}\n" for name, value in all_settings.items()))
        if is_formatted:
            return
        flags = [word for feature in features for word in ("--feature", feature)]
        self.format(*["--standalone"] * (is_controller and not is_static), *flags)

    def format(self, *flags: str) -> None:
        """Format the directory, which is made, as `kafka-storage.sh` does with these flags."""
        self.directory.mkdir(parents=True)
        arguments = ["format", "-t", CLUSTER_ID, "-c", str(self.config), *flags]
        self.oracle.run("kafka.tools.StorageTool", *arguments, cwd=self.directory.parent)

    @contextlib.contextmanager
    def running(self, stop_signal: signal.Signals) -> Iterator[str]:
        """The address of the started broker; at the end it gets `stop_signal`, always."""
        options = [f"-Dkafka.logs.dir={self.directory.parent}", "-Dlogstore.log.level=INFO", *self.jvm_options]
        command = self.oracle.command("kafka.Kafka", str(self.config), options=options)
        with self.log.open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
            self.process = process
            try:
                self._wait_until_started(process)
                yield self.bootstrap
            except BaseException:
                process.kill()
                raise
            process.send_signal(stop_signal)
            process.wait(STOP_SECONDS)

    def _wait_until_started(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while "Kafka Server started" not in self.log.read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the broker did not start: {self.log.read_text()[-2000:]}")
            time.sleep(0.2)


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("localhost", 0))
        return [one.getsockname()[1] for one in sockets]
