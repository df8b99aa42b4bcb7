"""The transforms with Django: objects in chunks of 1,000 and bulk_update.

usage: transform_django.py DATABASE three|all
"""

import sys

import django
from django.conf import settings

from arithmetic import delay_of_all, delay_of_three

path, how = sys.argv[1:]
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": path}},
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


with connection.cursor() as cursor:
    cursor.execute("PRAGMA journal_mode = WAL")
names = [field.name for field in Flight._meta.fields]
written = ["arr_delay", "tailnum"] if how == "all" else ["arr_delay"]
last = -1
total = 0
while True:
    flights = list(Flight.objects.filter(id__gt=last).order_by("id")[:1000])
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
