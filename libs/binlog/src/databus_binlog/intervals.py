"""Sets of numbers as sorted, separate [first, end) intervals."""

from __future__ import annotations

from bisect import bisect_right
from typing import TypeAlias

Intervals: TypeAlias = list[list[int]]


def insert(intervals: Intervals, first: int, end: int) -> None:
    """Add the interval [first, end) to `intervals`."""
    if intervals and first == intervals[-1][1]:  # fast path: the next numbers
        intervals[-1][1] = end
        return
    at = bisect_right(intervals, first, key=lambda interval: interval[0])
    if at and intervals[at - 1][1] >= first:
        at -= 1
    stop = at
    while stop < len(intervals) and intervals[stop][0] <= end:
        first, end = min(first, intervals[stop][0]), max(end, intervals[stop][1])
        stop += 1
    intervals[at:stop] = [[first, end]]


def subtract(intervals: Intervals, others: Intervals) -> Intervals:
    """Return the numbers that are in `intervals` and not in `others`."""
    rest: Intervals = []
    at = 0
    for first, end in intervals:
        while at < len(others) and others[at][1] <= first:
            at += 1
        index, low = at, first
        while index < len(others) and others[index][0] < end:
            if low < others[index][0]:
                rest.append([low, others[index][0]])
            low = others[index][1]
            index += 1
        if low < end:
            rest.append([low, end])
    return rest
