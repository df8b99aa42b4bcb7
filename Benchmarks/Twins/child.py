"""A command transform: reads one JSON object of three columns per line, answers the new arr_delay."""

import json
import sys

from arithmetic import delay_of_three

for line in sys.stdin:
    row = json.loads(line)
    delay = delay_of_three(row["dep_delay"], row["distance"], row["air_time"])
    print(json.dumps({"arr_delay": delay}), flush=False)
