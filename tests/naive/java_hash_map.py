"""A Java HashMap with Long keys, bucket lists and all, but without the trees that crowded buckets become."""

from __future__ import annotations

from typing import Generic, TypeVar

Value = TypeVar("Value")

TREE_TABLE_MIN = 64
TREE_BUCKET_MIN = 8


def java_hash(key: int) -> int:
    unsigned = key & (2**64 - 1)
    folded = (unsigned ^ (unsigned >> 32)) & (2**32 - 1)
    return folded ^ (folded >> 16)


class JavaHashMap(Generic[Value]):
    """`put` and `compute_if_absent` as in Java 17; `keys` in the order of its iterator."""

    def __init__(self) -> None:
        self.buckets: list[list[tuple[int, Value]]] = []
        self.size = 0

    def bucket(self, key: int) -> list[tuple[int, Value]]:
        return self.buckets[java_hash(key) & (len(self.buckets) - 1)]

    def get(self, key: int) -> Value | None:
        return next((value for found, value in self.bucket(key) if found == key), None) if self.buckets else None

    def put(self, key: int, value: Value) -> None:
        if not self.buckets:
            self.resize()
        bucket = self.bucket(key)
        for place, (found, _) in enumerate(bucket):
            if found == key:
                bucket[place] = (key, value)
                return
        bucket.append((key, value))
        if len(bucket) > TREE_BUCKET_MIN:
            self.treeify()
        self.size += 1
        if self.size > len(self.buckets) * 3 // 4:
            self.resize()

    def compute_if_absent(self, key: int, value: Value) -> Value:
        if not self.buckets or self.size > len(self.buckets) * 3 // 4:
            self.resize()
        known = self.get(key)
        if known is not None:
            return known
        bucket = self.bucket(key)
        count = len(bucket)
        bucket.insert(0, (key, value))
        if count >= TREE_BUCKET_MIN - 1:
            self.treeify()
        self.size += 1
        return value

    def remove(self, key: int) -> None:
        bucket = self.bucket(key)
        bucket[:] = [pair for pair in bucket if pair[0] != key]
        self.size -= 1

    def clear(self) -> None:
        for bucket in self.buckets:
            bucket.clear()
        self.size = 0

    def items(self) -> list[tuple[int, Value]]:
        return [pair for bucket in self.buckets for pair in bucket]

    def treeify(self) -> None:
        if len(self.buckets) < TREE_TABLE_MIN:
            self.resize()

    def resize(self) -> None:
        old = self.items()
        self.buckets = [[] for _ in range(2 * len(self.buckets) or 16)]
        for key, value in old:
            self.bucket(key).append((key, value))
