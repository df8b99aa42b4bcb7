"""The transforms with the standard library's sqlite3: chunks of 1,000, executemany, a transaction each.

usage: transform.py DATABASE three|all
"""

import sqlite3
import sys

from arithmetic import delay_of_all, delay_of_three

path, how = sys.argv[1:]
database = sqlite3.connect(path, isolation_level=None)
database.execute("PRAGMA journal_mode = WAL")
database.execute("PRAGMA synchronous = NORMAL")
last = -1
total = 0
while True:
    columns = "*" if how == "all" else "id, dep_delay, distance, air_time"
    rows = database.execute(
        f"SELECT {columns} FROM flights WHERE id > ? ORDER BY id LIMIT 1000", (last,)
    ).fetchall()
    if not rows:
        break
    database.execute("BEGIN IMMEDIATE")
    if how == "all":
        database.executemany(
            "UPDATE flights SET arr_delay = ?, tailnum = ? WHERE id = ?",
            [(delay_of_all(row), f"{row[10]}-{row[14]}", row[0]) for row in rows],
        )
    else:
        database.executemany(
            "UPDATE flights SET arr_delay = ? WHERE id = ?",
            [(delay_of_three(*row[1:]), row[0]) for row in rows],
        )
    database.execute("COMMIT")
    last = rows[-1][0]
    total += len(rows)
print(total)
