"""The program of a command transform: three columns in, one out."""

import json
import sys

from arithmetic import delay_of_three

for line in sys.stdin:
    row = json.loads(line)
    delay = delay_of_three(row["dep_delay"], row["distance"], row["air_time"])
    sys.stdout.write('{"arr_delay":%d}\n' % delay)
    sys.stdout.flush()
