"""The rules of backfills and of tables in doubt, as in docs/reference/backfill-protocol.md.

If the model found no violation without a rule, it would prove nothing about that rule.
"""

#: name → rule
RULES = {
    # the window of a chunk
    "view": "The view that a chunk is read from contains everything up to the window's start, S.",
    "set": "This is checked with GTID sets: after a failover, what is before S may be at later offsets of the log.",
    "collect": "The keys of changes after S are collected, and rows of the chunk with these keys are left out.",
    "before image": "The key of a before image is collected: the row with it is gone.",
    "end": "A chunk is spliced in where the stream has reached the end of the log, H.",
    "end after view": "H is read after the SELECT.",
    "end of the view's host": "H is the end of the log of the host that answered the SELECT.",
    "DDL": "DDL on the table before the splice drops its chunks.",
    "too many keys": "A chunk with too many collected keys is dropped, not spliced without them.",
    "successor": "Dropping a chunk also drops the chunk after it.",
    "key change": "DDL that changes the key starts the backfill over.",
    "one group": "The rows of a chunk and the new state are in one transaction.",
    "ordinal": "A chunk is a transaction of its own, with the next ordinal.",
    # names that move
    "rename in doubt": "A doubt follows a table to its new name, if that is captured.",
    "rename while filling": "So does a backfill that has not ended. It starts from the first row.",
    "doubt of the name": "If another table takes the old name in the same statement, the doubt stays with it, too.",
    "taken by another": "A backfill that has begun then starts over.",
    "gone": "If a table is dropped, or gets a name that is not captured, its doubt and its backfill end.",
    "statement": "All of this is in the transaction of the statement.",
    # generations
    "generation": "A new generation drops all chunks.",
    "states": "A reader takes the states from Kafka after its claim, whatever it remembers.",
    # TRUNCATE
    "TRUNCATE at S": "If a table is read in chunks, TRUNCATE is published at S of the first chunk, not with its rows.",
    "TRUNCATE with state": "TRUNCATE and the table's new state are in one transaction.",
    "TRUNCATE of parked": "A parked table gets a TRUNCATE, even if the request does not ask for it.",
    "TRUNCATE without key": "A table without a key that is loaded as a whole gets a TRUNCATE: upserts need a key.",
    # a table without key
    "exact": "The rows of a table without key are spliced in exactly where their view was taken.",
    "ahead": "That view contains everything that the stream has passed when it is opened, not only what precedes S.",
    # doubts
    "park": "A table is parked at a change in doubt.",
    "parked": "Changes of a parked table are not published.",
    "park drops": "Parking drops the table's chunks.",
    "start over": "When a table is parked, its backfill ends; the one that heals it starts from the first row.",
    "abort": "A transaction in doubt is not published; the generation that has sent rows of it ends.",
    "verdict": "The reader remembers which transaction it leaves out; else it would stop there in each generation.",
    "offset of verdict": "It remembers the offset, not the GTID: a server may reuse that of an unfinished transaction.",
    "half": "The GTID of an unfinished transaction is not added to the executed GTIDs.",
    # tables that cannot be published
    "report": "The report is in the Kafka transaction that would have contained the change.",
    "end of report": "Only a record that parks the table clears the report: others were sent without knowing of it.",
    "report ends": "The generation ends with this transaction: the rest was sent without knowing of the report.",
    "mark": "At the start of the next generation, the reader first takes over the reports in the table states.",
    # transactions that are skipped
    "letters": "The rows of a transaction that is skipped become dead letters.",
    "skip parks": "Their tables are parked at its end, and loaded again.",
    "skip doubts": "So are the tables of doubts in it: all tables, if a doubt does not show which.",
    "skip DDL": "DDL in it takes effect, and is published.",
    "skip ends": "The request is deleted in the Kafka transaction that contains the progress past the transaction.",
    "skip once": "The reader forgets it at the transaction's end: the GTID of an unfinished transaction may be reused.",
    # requests
    "interrupt": "Pausing and cancelling drop the chunks.",
    "cancel parks": "Cancelling a backfill that has sent its TRUNCATE parks the table: it is incomplete.",
    "once": "A request that has ended does not begin again, even after a doubt.",
    "superseded": "A table has one backfill at a time.",
    "own heal": "An earlier request does not pause or cancel the backfill that heals the table.",
}

#: name → rule that changes what is published, but not what is true
UNNEEDED = {
    "after image": "The key of an after image is collected: a row that was inserted in the window is not sent twice.",
}
