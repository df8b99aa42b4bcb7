"""The transforms with Django: objects in chunks of 1,000 and bulk_update.

usage: transform_django.py DATABASE three|all [EVERY]

DATABASE is an SQLite file or a PostgreSQL URL; EVERY leaves out rows whose id is not divisible by it.
"""

import sys
from urllib.parse import parse_qs, urlsplit

import django
from django.conf import settings

from arithmetic import delay_of_all, delay_of_three

path, how = sys.argv[1:3]
every = int(sys.argv[3]) if len(sys.argv) > 3 else 1
server = path.startswith("postgres://")
if server:
    url = urlsplit(path)
    options = {name: values[0] for name, values in parse_qs(url.query).items()}
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": url.path[1:],
        "USER": url.username,
        "HOST": options["host"],
        "PORT": options["port"],
    }
else:
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": path}
settings.configure(
    DATABASES={"default": database},
    INSTALLED_APPS=[],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()

from django.db import connection, models, transaction  # noqa: E402


class Flight(models.Model):
    id = models.IntegerField(primary_key=True)
    year = models.IntegerField()
    month = models.IntegerField()
    day = models.IntegerField()
    dep_time = models.IntegerField(null=True)
    sched_dep_time = models.IntegerField()
    dep_delay = models.IntegerField(null=True)
    arr_time = models.IntegerField(null=True)
    sched_arr_time = models.IntegerField()
    arr_delay = models.IntegerField(null=True)
    carrier = models.TextField()
    flight = models.IntegerField()
    tailnum = models.TextField(null=True)
    origin = models.TextField()
    dest = models.TextField()
    air_time = models.IntegerField(null=True)
    distance = models.FloatField()
    hour = models.IntegerField()
    minute = models.IntegerField()
    time_hour = models.TextField()

    class Meta:
        app_label = "flights"
        db_table = "flights"
        managed = False


if not server:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode = WAL")
rows = Flight.objects.alias(rest=models.F("id") % every).filter(rest=0) if every > 1 else Flight.objects
names = [field.name for field in Flight._meta.fields]
written = ["arr_delay", "tailnum"] if how == "all" else ["arr_delay"]
last = -1
total = 0
while True:
    flights = list(rows.filter(id__gt=last).order_by("id")[:1000])
    if not flights:
        break
    last = flights[-1].id
    for flight in flights:
        if how == "all":
            delay = delay_of_all([getattr(flight, name) for name in names])
            flight.tailnum = f"{flight.carrier}-{flight.dest}"
            flight.arr_delay = delay
        else:
            flight.arr_delay = delay_of_three(flight.dep_delay, flight.distance, flight.air_time)
    with transaction.atomic():
        Flight.objects.bulk_update(flights, written)
    total += len(flights)
print(total)
