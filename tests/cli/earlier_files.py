# SPDX-License-Identifier: BSD-2-Clause
"""Files that an earlier version wrote still open. files_0.1/ holds three of them: a recording by `allium run --sites
--period 1` of a sleep(1) with two allocations, the --state file of an `allium watch` that dismissed both samples, and a
file of `allium sys kmem -o`. The truth is what that version printed of them, and what SQLite reads.
"""
import gzip
import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
import recording_reader
import tap
from workdir import placed
from tap import check, equal

FILES = os.path.dirname(os.path.abspath(__file__)) + "/files_0.1/"


def unpacked(place, name):
    with gzip.open(FILES + name + ".gz") as packed, open(place.path(name), "wb") as file:
        shutil.copyfileobj(packed, file)
    return name


def recording(place):
    name = unpacked(place, "run.allium")
    total = json.loads(place.allium("report", name, "--json").out)["total"]
    equal([total[key] for key in ("live_bytes", "live_objects", "peak_bytes", "allocated_bytes", "allocations")],
          [44, 2, 44, 44, 2], "report")
    sites = json.loads(place.allium("sites", name, "--json").out)
    equal([(row["function"], row["total_bytes"], row["requested_bytes"]) for row in sites["rows"]],
          [("set_binding_values", 40, 34), ("__textdomain", 24, 10)], "sites")


def state(place):
    name = unpacked(place, "run.allium")
    shutil.copy(FILES + "run.state", place.path("run.state"))
    watch = ["watch", name, "--once", "--older-than", "0s"]
    check(": live 44 B, older than 0 ns 44 B\n" in place.allium(*watch).out, "without it")
    seen = place.allium(*watch, "--state", "run.state").out
    check(": live 44 B, older than 0 ns 0 B, 2 samples dismissed\n" in seen, seen)


def rows_of_sys(place):
    name = unpacked(place, "sys.allium")
    query = "SELECT count(*), sum(allocations) FROM sys_kmem"
    equal(recording_reader.rows(place.path(name), query), [(112, 3710)], "by SQLite alone")
    rows = json.loads(place.allium("sql", name, query, "--json").out)["rows"]
    equal([list(row.values()) for row in rows], [[112, 3710]], "by allium sql")


tap.main([(name, placed(function)) for name, function in [
    ("a recording of version 0.1 has what that version showed of it", recording),
    ("samples that a --state file of version 0.1 dismissed stay dismissed", state),
    ("allium sql reads what allium sys of version 0.1 wrote", rows_of_sys),
]])
