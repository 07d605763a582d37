"""Whatever a client sends, the server answers it or closes the connection, and learns nothing from what it refuses."""

import pytest

pytest.importorskip("fastapi")

from bench.leavers import leave_server
from bench.serve_fuzz import Outcome, Report, fuzz_bytes, fuzz_schema, make, split_answers
from bench.server import Server

REQUESTS = 1500


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzzed") / "folder"
    folder.mkdir()
    with Server(folder).start() as server:
        yield server


def test_bytes_that_are_no_requests_or_bad_ones(server, tmp_path):
    report = Report(1, tmp_path)
    fuzz_bytes(server, report, range(REQUESTS))
    assert not report.failures
    total = sum(counts[word] for counts in report.kinds.values() for word in ("2xx", "4xx", "closed"))
    assert total >= REQUESTS
    assert all(sum(counts.values()) for counts in report.kinds.values())


def test_requests_made_from_the_schema(server, tmp_path):
    pytest.importorskip("schemathesis")
    report = Report(1, tmp_path)
    statuses = fuzz_schema(server, report, 300)
    assert not report.failures
    assert len(statuses) > 10


def test_clients_that_leave_at_any_byte(tmp_path):
    folder = tmp_path / "left"
    folder.mkdir()
    assert leave_server(folder, times=200, seed=1, entries=20) == []


def test_answers_are_told_apart():
    first = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    second = b"HTTP/1.1 422 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    assert split_answers(first + second, False) == ([(200, b"{}"), (422, b"abc")], True)
    assert split_answers(first + second[:-5], False) == ([(200, b"{}")], False)
    assert split_answers(b"HTTP/1.1 100 Continue\r\n\r\n" + first, False) == ([(200, b"{}")], True)
    assert split_answers(first[:-1], False) == ([], False)


def test_a_request_is_known_by_its_number(tmp_path):
    assert make(7, 1, "id") == make(7, 1, "id")
    report = Report(1, tmp_path)
    report.add(7, make(7, 1, "id"), Outcome([(500, b"")], 0.1, "answered 500"))
    assert len(report.failures) == 1
    assert (tmp_path / "request-7").read_bytes() == make(7, 1, "id").content
