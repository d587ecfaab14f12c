"""Search the models of the hand-over and of backfills for lost or invented rows, the same stories in every run."""

import argparse
import logging
import time

from model.backfill_rules import RULES, UNNEEDED
from model.backfill_walk import search
from model.machine import HandOver, HandOverAtLeastOnce, explore
from model.rules import LEFT_OUT, without


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stories", type=int, default=2000, help="number of stories (default: %(default)s)")
    steps = "limit for the steps of a story, including faults (default: %(default)s)"
    parser.add_argument("--steps", type=int, default=50, help=steps)
    parser.add_argument("--without", nargs="+", default=[], help="rules to leave out", metavar="RULE")
    model = parser.add_mutually_exclusive_group()
    model.add_argument("--at-least-once", action="store_true", help="search without Kafka's transactions")
    model.add_argument("--backfill", action="store_true", help="search the model of backfills and tables in doubt")
    parser.add_argument("--first", type=int, default=0, help="number of the first story, with --backfill")
    options = parser.parse_args()
    if unknown := set(options.without).difference({*RULES, *UNNEEDED} if options.backfill else LEFT_OUT):
        parser.error(f"no such rule: {', '.join(sorted(unknown))}")
    logging.getLogger("databus").setLevel(logging.WARNING)
    begin = time.monotonic()
    if options.backfill:
        search(options.stories, without=options.without, steps=options.steps, first=options.first)
    else:
        with without(*options.without):
            explore(HandOverAtLeastOnce if options.at_least_once else HandOver, options.stories, steps=options.steps)
    print(f"{options.stories} stories of up to {options.steps} steps in {time.monotonic() - begin:.0f} s: no violation")


if __name__ == "__main__":
    main()
