"""The transforms with SQLAlchemy's ORM: objects in chunks of 1,000, a flush and a commit each.

usage: transform_sqlalchemy.py DATABASE three|all [EVERY]

DATABASE is an SQLite file or a PostgreSQL URL; EVERY leaves out rows whose id is not divisible by it.
"""

import sys

from sqlalchemy import MetaData, Table, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Session

from arithmetic import delay_of_all, delay_of_three

path, how = sys.argv[1:3]
every = int(sys.argv[3]) if len(sys.argv) > 3 else 1
if path.startswith("postgres://"):
    engine = create_engine(path.replace("postgres://", "postgresql+psycopg://"))
else:
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode = WAL")
metadata = MetaData()
table = Table("flights", metadata, autoload_with=engine)


class Base(DeclarativeBase):
    pass


class Flight(Base):
    __table__ = table


names = [column.name for column in table.columns]
last = -1
total = 0
while True:
    with Session(engine) as session:
        rows = select(Flight).where(Flight.id > last)
        if every > 1:
            rows = rows.where(Flight.id % every == 0)
        flights = session.scalars(rows.order_by(Flight.id).limit(1000)).all()
        if not flights:
            break
        last = flights[-1].id
        for flight in flights:
            if how == "all":
                delay = delay_of_all([getattr(flight, name) for name in names])
                flight.tailnum = f"{flight.carrier}-{flight.dest}"
                flight.arr_delay = delay
            else:
                flight.arr_delay = delay_of_three(
                    flight.dep_delay, flight.distance, flight.air_time
                )
        session.commit()
        total += len(flights)
print(total)
