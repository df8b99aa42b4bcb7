"""Inserts rows, with the standard library's sqlite3: one executemany in one transaction.

usage: insert.py DATABASE COUNT [update]
"""

import sqlite3
import sys

path, count = sys.argv[1], int(sys.argv[2])
database = sqlite3.connect(path, isolation_level=None)
database.execute("PRAGMA journal_mode = WAL")
database.execute("PRAGMA synchronous = NORMAL")
statement = "INSERT INTO visits (number, place, guest, minutes, cost) VALUES (?, ?, ?, ?, ?)"
if len(sys.argv) > 3:
    statement += (
        " ON CONFLICT DO UPDATE SET place = excluded.place, guest = excluded.guest,"
        " minutes = excluded.minutes, cost = excluded.cost"
    )
database.execute("BEGIN IMMEDIATE")
database.executemany(
    statement,
    (
        (
            number,
            f"place {number % 1000}",
            None if number % 7 == 0 else f"guest number {number}",
            number % 97,
            number / 8,
        )
        for number in range(count)
    ),
)
database.execute("COMMIT")
print(count)
