"""Work by objects with SQLAlchemy's ORM: chunks of 1,000, a session and a commit each.

usage: contexts_sqlalchemy.py DATABASE read|update|insert|delete
       contexts_sqlalchemy.py DATABASE upsert [COUNT]

`upsert` merges new objects of table `places` by their primary key; every second one exists already.
"""

import sys

from sqlalchemy import MetaData, Table, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Session, load_only

from arithmetic import delay_of_three

path, how = sys.argv[1:3]
engine = create_engine(f"sqlite:///{path}")
with engine.connect() as connection:
    connection.exec_driver_sql("PRAGMA journal_mode = WAL")
    connection.exec_driver_sql("PRAGMA synchronous = NORMAL")
metadata = MetaData()


class Base(DeclarativeBase):
    pass


if how == "upsert":

    class Place(Base):
        __table__ = Table("places", metadata, autoload_with=engine)

    count = int(sys.argv[3]) if len(sys.argv) > 3 else 100_000
    for start in range(0, count, 1000):
        with Session(engine) as session:
            for number in range(start, min(start + 1000, count)):
                session.merge(
                    Place(
                        code=number,
                        name=f"place {number}",
                        visits=number % 97,
                        height=number / 8,
                    )
                )
            session.commit()
    print(count)
    sys.exit()


class Flight(Base):
    __table__ = Table("flights", metadata, autoload_with=engine)


if how == "insert":

    class Copy(Base):
        __table__ = Table("copies", metadata, autoload_with=engine)


# The same columns as the classes of the other contenders.
columns = load_only(Flight.dep_delay, Flight.arr_delay, Flight.air_time, Flight.distance)
last = -1
total = 0
while True:
    with Session(engine) as session:
        flights = session.scalars(
            select(Flight).options(columns).where(Flight.id > last).order_by(Flight.id).limit(1000)
        ).all()
        if not flights:
            break
        last = flights[-1].id
        for flight in flights:
            if how == "read":
                _ = (flight.dep_delay or 0) + (flight.air_time or 0)
            elif how == "update":
                flight.arr_delay = delay_of_three(
                    flight.dep_delay, flight.distance, flight.air_time
                )
            elif how == "insert":
                session.add(
                    Copy(delay=flight.dep_delay, air_time=flight.air_time, distance=flight.distance)
                )
            else:
                session.delete(flight)
        session.commit()
        total += len(flights)
print(total)
