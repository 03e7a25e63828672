# SPDX-License-Identifier: BSD-2-Clause
"""Reads recordings with SQLite alone, as allium-recording(5) describes them: nothing of allium's own reader is in it.
"""
import collections
import contextlib
import sqlite3

Cell = collections.namedtuple("Cell", "id image thread ordinal function size_class period allocated freed")
Sums = collections.namedtuple("Sums", "samples seen bytes count")
Sample = collections.namedtuple("Sample", "image serial cell address size")


def rows(path, query):
    with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
        return db.execute(query).fetchall()


def cells(path):
    """Every cell, with the innermost function of its stack."""
    found = rows(path, """
        SELECT cell.id, cell.image, cell.thread, thread.ordinal, string.text, size_class, period_bytes,
               allocated_samples, allocated_seen_bytes, allocated_bytes, allocated_count,
               freed_samples, freed_seen_bytes, freed_bytes, freed_count
        FROM cell LEFT JOIN thread ON thread.id = cell.thread LEFT JOIN stack ON stack.id = cell.stack
             LEFT JOIN line ON line.location = stack.location AND line.position = 0
             LEFT JOIN string ON string.id = line.function""")
    return [Cell(*row[:7], Sums(*row[7:11]), Sums(*row[11:])) for row in found]


def samples(path):
    return [Sample(*row) for row in rows(path, "SELECT image, serial, cell, address, size_bytes FROM live_sample")]


def images(path):
    """{row: what is said of that image}"""
    names = ("id", "image_id", "parent_image_id", "pid", "comm", "state", "begun", "done", "torn", "inconsistent",
             "lost_samples", "lost_live")
    found = rows(path, """
        SELECT image.id, image_id, parent_image_id, pid, string.text, state, operations_begun, operations_done,
               torn_samples, inconsistent, lost_samples, lost_live
        FROM image LEFT JOIN string ON string.id = image.comm ORDER BY image.id""")
    return {row[0]: dict(zip(names, row)) for row in found}


def added(sums):
    return Sums(*(sum(column) for column in zip(*sums))) if sums else Sums(0, 0, 0, 0)


def moment(path, condition):
    """Nanoseconds from the beginning to the first moment kept whose point is so; 0: there is none (yet), or no
    recording.
    """
    with contextlib.suppress(sqlite3.OperationalError):  # while it is being made
        ((found,),) = rows(path, """
            SELECT min(time_ns) - (SELECT value FROM meta WHERE key = 'started_ns') FROM point
            WHERE moment IS NOT NULL AND """ + condition)
        return found or 0
    return 0
