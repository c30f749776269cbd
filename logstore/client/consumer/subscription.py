"""Keeps what a program asks a consumer to read: topics that its group shares, or partitions (`SubscriptionState`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ...errors import IllegalStateError, UsageError
from ...store.metadata.topics import require_valid_name
from ...topics import INTERNAL_TOPICS
from ..arguments import ILLEGAL_ARGUMENT

_EXCLUSIVE = "Subscription to topics, partitions and pattern are mutually exclusive"


@dataclass(frozen=True, slots=True)
class SubscriptionState:
    """Some topics, all topics of a pattern, or partitions by name; by default nothing.

    Attributes:
        topics: topics to read; with a pattern those that matched last.
    """

    topics: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None
    is_assigned: bool = False

    @property
    def is_shared(self) -> bool:
        """Whether the group decides which partitions the consumer reads."""
        return bool(self.topics) or self.pattern is not None

    def of_topics(self, topics: Iterable[str]) -> SubscriptionState:
        """Return the state with these topics instead.

        Raises IllegalStateError after an assignment or a pattern, InvalidTopicError for a name that no topic can have,
        so that nothing would ever come, UsageError for an empty name, or for one name where a list is expected.
        """
        if isinstance(topics, str) or not isinstance(topics, Iterable):
            raise UsageError("Topics are a list of names", expected="a list", found=repr(topics))
        names = tuple(topics)
        if not names:
            return SubscriptionState()
        if not all(isinstance(name, str) and name.strip() for name in names):
            raise UsageError(
                "Topic collection to subscribe to cannot contain null or empty topic", java_class=ILLEGAL_ARGUMENT
            )
        for name in names:
            require_valid_name(name)
        self._require_same(self.is_assigned or self.pattern is not None)
        return SubscriptionState(frozenset(names))

    def of_pattern(self, pattern: str | re.Pattern[str], topics: Iterable[str] = ()) -> SubscriptionState:
        """Return the state with all topics whose whole name matches; raises IllegalStateError and UsageError.

        `topics` are those that are given beside it, of which there must be none.
        """
        if isinstance(pattern, str) and not pattern:
            raise UsageError("Topic pattern to subscribe to cannot be empty", java_class=ILLEGAL_ARGUMENT)
        self._require_same(self.is_assigned or bool(topics) or (bool(self.topics) and self.pattern is None))
        try:
            compiled = re.compile(pattern)
            compiled.fullmatch("")  # one of bytes matches no text
        except (re.error, TypeError) as error:
            raise UsageError(f"The topic pattern is none: {error}", found=repr(pattern)) from error
        return SubscriptionState(pattern=compiled)

    def of_partitions(self) -> SubscriptionState:
        """Return the state of a consumer with assigned partitions; raises IllegalStateError if `is_shared`."""
        self._require_same(self.is_shared)
        return SubscriptionState(is_assigned=True)

    def matched(self, topics: Iterable[str], *, excludes_internal: bool) -> SubscriptionState:
        """Return the state with those of `topics` that the pattern matches."""
        if self.pattern is None:
            return self
        names = [name for name in topics if not (excludes_internal and name in INTERNAL_TOPICS)]
        return replace(self, topics=frozenset(name for name in names if self.pattern.fullmatch(name)))

    @staticmethod
    def _require_same(is_other: bool) -> None:
        if is_other:
            raise IllegalStateError(_EXCLUSIVE, advice="unsubscribe first")
