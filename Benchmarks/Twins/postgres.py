"""Transforms a tenth of the flights with psycopg: a statement per row, or executemany by the thousand."""

import sys

import psycopg

from arithmetic import delay_of_three

url, way = sys.argv[1:]
STATEMENT = "UPDATE flights SET arr_delay = %s WHERE id = %s"


with psycopg.connect(url) as connection, connection.cursor("rows") as rows:
    rows.itersize = 1000
    rows.execute("SELECT id, dep_delay, distance, air_time FROM flights WHERE id % 10 = 0 ORDER BY id")
    with connection.cursor() as cursor:
        while part := rows.fetchmany(1000):
            values = [(delay_of_three(*row[1:]), row[0]) for row in part]
            if way == "executemany":
                cursor.executemany(STATEMENT, values)
            else:
                for value in values:
                    cursor.execute(STATEMENT, value)
