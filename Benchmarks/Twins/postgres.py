"""Transforms a tenth of the flights with psycopg: a statement per row, or executemany by the thousand."""

import sys

import psycopg

url, way = sys.argv[1:]
STATEMENT = "UPDATE flights SET arr_delay = %s WHERE id = %s"


def gain(dep_delay, arr_delay, distance):
    return int((arr_delay or 0) + (dep_delay or 0) * 0.5 + distance / 1000)


with psycopg.connect(url) as connection, connection.cursor("rows") as rows:
    rows.itersize = 1000
    rows.execute("SELECT id, dep_delay, arr_delay, distance FROM flights WHERE id % 10 = 0 ORDER BY id")
    with connection.cursor() as cursor:
        while part := rows.fetchmany(1000):
            values = [(gain(*row[1:]), row[0]) for row in part]
            if way == "executemany":
                cursor.executemany(STATEMENT, values)
            else:
                for value in values:
                    cursor.execute(STATEMENT, value)
