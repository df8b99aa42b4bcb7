"""The arithmetic of the transforms, shared by the Python twins."""


def delay_of_three(dep_delay, distance, air_time):
    """The new arr_delay, from three columns."""
    return (dep_delay or 0) + int(distance) // 10 - (air_time or 0)


def part_of_delay(value):
    """One column's part of the new arr_delay from all columns."""
    if value is None:
        return 0
    return len(value) if isinstance(value, str) else int(value)


def delay_of_all(row):
    """The new arr_delay, from all columns."""
    return sum(map(part_of_delay, row)) % 1000
