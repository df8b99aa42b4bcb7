"""Reads the identifiers of all matching rows into a list.

usage: fetch.py DATABASE CONDITION
"""

import sqlite3
import sys

path, condition = sys.argv[1:]
rows = sqlite3.connect(path).execute(f"SELECT id FROM flights WHERE {condition} ORDER BY id")
print(len([row[0] for row in rows]))
