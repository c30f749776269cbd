"""Consume, transform, produce, again and again, until it is killed: the child of `test_exactly_once`.

    python exactly_once_program.py DIRECTORY SEED [finish]

A feeder writes numbers to `in`. Workers, members of one group, write each number to `left` and `right` and commit the
offsets with them, in transactions. Now and then one gives a transaction up, or stops in the middle until another has
taken its transactional id, and then tries to commit nevertheless. With `finish` nothing is fed, and the program ends
when everything is consumed.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import logstore
from logstore.client.consumer import Consumer
from logstore.client.consumer.consumer_records import RecordsByPartition
from logstore.client.producer import Producer
from logstore.client.store import Store
from logstore.errors import LogstoreError, Recovery
from logstore.model import TopicPartition

PARTITION_COUNT = 3
WORKER_COUNT = 3
OUTPUTS = ("left", "right")
GROUP = "transform"
INTERNAL = {"offsets.topic.num.partitions": 3, "transaction.state.log.num.partitions": 3}


def open_store(directory: str) -> Store:
    """With all topics, whichever an earlier process has made."""
    store = logstore.open(directory, config=INTERNAL)
    for topic in ("in", *OUTPUTS):
        if topic not in store.topics:
            store.create_topic(topic, PARTITION_COUNT)
    return store


class ZombieWroteError(Exception):
    """A producer that was replaced could commit."""


def feed(store: Store, dice: random.Random) -> None:
    """Write the numbers behind those that are there, some at a time."""
    producer = store.producer(transactional_id="feeder", linger_ms=0)
    producer.init_transactions()
    consumer = store.consumer("in", isolation_level="read_committed", auto_offset_reset="earliest", check_crcs=False)
    number = 0
    while records := consumer.poll(max_records=100_000):
        number = max(number, *(int(record.value) + 1 for batch in records.values() for record in batch))
    while True:
        producer.begin_transaction()
        for _ in range(dice.randrange(1, 30)):
            producer.send("in", b"%d" % number, b"%d" % dice.randrange(1000))
            number += 1
        producer.commit_transaction()


class Worker:
    """One thread's producer and consumer; `slot` is what its transactional id is made of."""

    def __init__(self, store: Store, slot: int, dice: random.Random) -> None:
        self.store, self.slot, self.dice = store, slot, dice
        self.producer = self.new_producer()
        self.consumer = self.new_consumer()

    def new_producer(self) -> Producer:
        producer = self.store.producer(transactional_id=f"transform-{self.slot}", batch_size=500, linger_ms=2)
        producer.init_transactions()
        return producer

    def new_consumer(self) -> Consumer:
        return self.store.consumer(
            "in",
            group_id=GROUP,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=self.dice.choice([1, 7, 50]),
        )

    def step(self) -> bool:
        """One transaction; whether there was anything to do."""
        records = self.consumer.poll(20)
        if not records:
            return False
        try:
            self.transform(records)
        except LogstoreError as error:
            if error.recovery is not Recovery.ABORT:
                self.replace()
            else:
                self.give_up(records)
        return True

    def transform(self, records: RecordsByPartition) -> None:
        """Write what comes of the records, and that they are done."""
        self.producer.begin_transaction()
        transaction = b"%d-%d" % (os.getpid(), self.dice.getrandbits(60))
        for batch in records.values():
            for record in batch:
                for topic in OUTPUTS:
                    self.producer.send(topic, record.value, record.key, [("transaction", transaction)])
        chance = self.dice.random()
        if chance < 0.05:
            self.give_up(records)
            return
        if chance < 0.1:
            self.die_and_come_back(records)
            return
        self.producer.send_offsets_to_transaction(next_offsets(records), self.consumer.group_metadata())
        self.producer.commit_transaction()

    def give_up(self, records: RecordsByPartition) -> None:
        """Abort, and read the same records again."""
        self.producer.abort_transaction()
        for partition, batch in records.items():
            if partition in self.consumer.assignment():
                self.consumer.seek(partition, batch[0].offset)

    def replace(self) -> None:
        """Close both, and begin with new ones."""
        close_failed(self.producer, self.consumer)
        self.producer, self.consumer = self.new_producer(), self.new_consumer()

    def die_and_come_back(self, records: RecordsByPartition) -> None:
        """Be a zombie: go on after another has the transactional id. The group notices only later."""
        if self.dice.random() < 0.5:
            self.producer.flush()
        zombie, zombie_consumer = self.producer, self.consumer
        self.producer, self.consumer = self.new_producer(), self.new_consumer()
        try:
            zombie.send_offsets_to_transaction(next_offsets(records), zombie_consumer.group_metadata())
            zombie.commit_transaction()
        except LogstoreError as error:
            if error.recovery in (None, Recovery.MEND):
                raise
        else:
            raise ZombieWroteError(zombie.config["transactional.id"])
        close_failed(zombie, zombie_consumer)


def close_failed(*clients: Producer | Consumer) -> None:
    """Close clients that cannot go on; a producer may say once more why its records were not written."""
    for client in clients:
        with suppress(LogstoreError):
            client.close()


def next_offsets(records: RecordsByPartition) -> dict[TopicPartition, int]:
    return {partition: batch[-1].offset + 1 for partition, batch in records.items()}


def is_finished(store: Store) -> bool:
    """Whether the group has committed everything there is."""
    reader = store.consumer(group_id=GROUP, isolation_level="read_committed", auto_offset_reset="earliest")
    reader.assign([("in", number) for number in range(PARTITION_COUNT)])
    return all(reader.lag(partition).records == 0 for partition in reader.assignment())


def work(store: Store, slot: int, seed: int, *, is_finishing: bool) -> None:
    """A worker's thread."""
    worker = Worker(store, slot, random.Random(seed))
    while worker.step() or not (is_finishing and is_finished(store)):
        continue


def main(directory: str, seed: int, *, is_finishing: bool) -> None:
    """See the module; anything that goes wrong ends the process with another code than a kill."""
    dice = random.Random(seed)
    with open_store(directory) as store:
        print("ready", flush=True)
        seeds = [dice.getrandbits(30) for _ in range(WORKER_COUNT)]
        jobs = [partial(work, store, slot, seed, is_finishing=is_finishing) for slot, seed in enumerate(seeds)]
        if is_finishing:
            store.producer(transactional_id="feeder").init_transactions()  # what a killed one left open is aborted
        else:
            jobs.append(partial(feed, store, dice))
        threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def guarded(job: Callable[[], object]) -> None:
    """Run a thread's job; what it raises ends the process."""
    try:
        job()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(3)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), is_finishing=sys.argv[3:] == ["finish"])
