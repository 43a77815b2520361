"""Clusters' own logs as traces."""

from __future__ import annotations

from pathlib import Path

import pytest

import apportion as ap

SACCT = """JobID|User|Account|Submit|Start|End|ElapsedRaw|State|NNodes|AllocTRES|JobName
1|ann|lab|2026-03-02T08:00:00|2026-03-02T08:10:00|2026-03-02T09:10:00|3600|COMPLETED|1|gres/gpu=4|a|b
2|bob|lab|2026-03-02T18:00:00|2026-03-02T18:00:10|2026-03-02T20:00:10|7200|FAILED|1|gres/gpu=1|train
3|bob|lab|2026-03-02T19:00:00|Unknown|Unknown|0|PENDING|1||train
"""


def test_a_log_is_read_by_rules_in_a_window(tmp_path: Path) -> None:
    log = tmp_path / "sacct.txt"
    log.write_text(SACCT)
    rules = tmp_path / "rules.yaml"
    rules.write_text("format: apportion/log-rules-v1\nentity: user\njob_types: [{draw: [A3C]}]\n")
    trace = ap.traces.read(log, form="sacct", throughputs="osdi20", zone="Europe/Berlin")
    assert list(trace["id"]) == ["1", "2"]
    assert list(trace["arrival"]) == [0.0, 36_000.0]
    report = trace.report()
    assert report["rows_read"] == 3
    assert report["left_out"] == {"never started": 1}
    assert report["doubts"] == {}
    only = ap.traces.read(log, form="sacct", throughputs="osdi20", rules=rules, window="2026-03-02T12:00Z..")
    assert list(only["job_type"]) == ["A3C"]
    assert list(only["entity"]) == ["bob"]


def test_what_is_not_understood_is_refused_with_its_place(tmp_path: Path) -> None:
    log = tmp_path / "sacct.txt"
    log.write_text(SACCT.replace("COMPLETED", "GONE"))
    with pytest.raises(ap.InputError, match=r"(?s)1 row of the log not understood.*sacct.txt:2:.*GONE"):
        ap.traces.read(log, form="sacct", throughputs="osdi20")
    trace = ap.traces.read(log, form="sacct", throughputs="osdi20", skip_unreadable=True)
    assert list(trace["id"]) == ["2"]
    with pytest.raises(ap.InputError, match="unknown form `slrm`"):
        ap.traces.read(log, form="slrm", throughputs="osdi20")
    with pytest.raises(ap.InputError, match="unknown time zone"):
        ap.traces.read(log, form="sacct", throughputs="osdi20", zone="Nowhere")


def test_what_is_said_of_a_log_names_arguments_and_no_options(tmp_path: Path) -> None:
    log = tmp_path / "sacct.txt"
    log.write_text(SACCT)
    with pytest.raises(ap.InputError, match="a cluster's log needs throughputs") as raised:
        ap.traces.read(log, form="sacct")
    assert raised.value.help == 'such as throughputs="osdi20"'
    (doubt,) = ap.traces.read(log, form="sacct", throughputs="osdi20").report()["doubts"]
    assert "`zone=…` gives the zone" in doubt and "--" not in doubt
    with pytest.raises(ap.InputError, match="a log of the form `dlrm` is not read") as raised:
        ap.traces.read(log, form="dlrm", throughputs="osdi20")
    assert raised.value.help is not None and raised.value.help.startswith("`apportion trace convert … --force`, the command, reads it")
