"""Adds one to the arrival delay, with the standard library's sqlite3: chunks of 1,000 and executemany.

usage: update.py DATABASE CONDITION
"""

import sqlite3
import sys

path, condition = sys.argv[1:]
database = sqlite3.connect(path, isolation_level=None)
database.execute("PRAGMA journal_mode = WAL")
database.execute("PRAGMA synchronous = NORMAL")
last = -1
total = 0
while True:
    identifiers = database.execute(
        f"SELECT id FROM flights WHERE id > ? AND ({condition}) ORDER BY id LIMIT 1000", (last,)
    ).fetchall()
    if not identifiers:
        break
    database.execute("BEGIN IMMEDIATE")
    database.executemany(
        "UPDATE flights SET arr_delay = coalesce(arr_delay, 0) + 1 WHERE id = ?", identifiers
    )
    database.execute("COMMIT")
    last = identifiers[-1][0]
    total += len(identifiers)
print(total)
