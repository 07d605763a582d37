"""Tokens: what is kept of them, what opens a door and what does not, and what two commands at once do."""

import json
import os
import re
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt.errors import DamagedTokens, InvalidParameter, OutputError
from rosenblatt.serve import tokens
from rosenblatt.serve.tokens import SCOPES, Tokens, add_token, list_tokens, parse_expiry, remove_token

TEXT = re.compile(r"rb_[0-9a-f]{8}_[A-Za-z0-9_-]{43}")
NOW = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)


def find(folder, text):
    return Tokens(folder).current().find(text.encode())


def test_the_secret_is_kept_nowhere(tmp_path):
    text, token = add_token(tmp_path / "new" / "folder", ["learn", "predict", "learn"], name="dashboard")
    assert TEXT.fullmatch(text)
    assert token.scopes == ("predict", "learn")
    path = tmp_path / "new" / "folder" / "tokens.json"
    secret = text.split("_", 2)[2]
    assert secret not in path.read_text()
    assert list_tokens(path.parent) == [token]
    assert find(path.parent, text) == token
    assert {stat.S_IMODE(os.stat(each).st_mode) for each in path.parent.iterdir()} == {0o600}
    assert stat.S_IMODE(os.stat(path.parent).st_mode) == 0o700


def test_a_file_that_others_could_read_becomes_private(tmp_path):
    add_token(tmp_path, ["learn"])
    (tmp_path / "tokens.json").chmod(0o644)
    add_token(tmp_path, ["learn"])
    assert stat.S_IMODE(os.stat(tmp_path / "tokens.json").st_mode) == 0o600


def test_a_scope_allows_itself_and_administer_everything(tmp_path):
    for scope in SCOPES:
        token = add_token(tmp_path, [scope]).token
        assert [token.allows(other) for other in SCOPES] == [scope in (other, "administer") for other in SCOPES]


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """The tokens of a folder that has one, and its text."""
    folder = tmp_path_factory.mktemp("tokens")
    return add_token(folder, ["learn"]).text, Tokens(folder).current()


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_only_the_text_itself_opens(known, data):
    text, found = known
    place = data.draw(st.integers(0, len(text)))
    changed = data.draw(
        st.one_of(
            st.binary(max_size=80),
            st.just(text[:place].encode()),
            st.characters(max_codepoint=255).map(lambda c: (text[:place] + c + text[place + 1 :]).encode("latin-1")),
            st.characters(max_codepoint=255).map(lambda c: (text[:place] + c + text[place:]).encode("latin-1")),
            st.text(max_size=60).map(lambda secret: f"{text[:12]}{secret}".encode()),
            st.just((text + text).encode()),
        )
    )
    assert (found.find(changed) is not None) == (changed == text.encode())


def test_every_token_is_another(tmp_path):
    texts = [add_token(tmp_path, ["learn"]).text for _ in range(20)]
    assert len({text.split("_", 2)[1] for text in texts}) == len({text.split("_", 2)[2] for text in texts}) == 20
    assert [token.id for token in list_tokens(tmp_path)] == [text.split("_", 2)[1] for text in texts]


def test_a_token_is_removed_by_its_id_or_its_text(tmp_path):
    one, other = add_token(tmp_path, ["learn"]), add_token(tmp_path, ["predict"])
    assert remove_token(tmp_path, one.token.id) == one.token
    assert find(tmp_path, one.text) is None
    assert find(tmp_path, other.text) == other.token
    remove_token(tmp_path, other.text)
    assert list_tokens(tmp_path) == []
    assert Tokens(tmp_path).needed()  # and there is none: nobody gets in
    with pytest.raises(InvalidParameter, match="the folder has no tokens"):
        remove_token(tmp_path, one.token.id)


def test_a_folder_without_a_file_needs_no_tokens_until_it_has_one(tmp_path):
    assert list_tokens(tmp_path) == []
    running = Tokens(tmp_path)
    assert not running.needed()
    text, token = add_token(tmp_path, ["learn"])
    assert running.current().find(text.encode()) == token
    (tmp_path / "tokens.json").unlink()
    assert running.needed()
    assert running.current().find(text.encode()) is None
    assert not Tokens(tmp_path).needed()


def entry(**changes):
    whole = {
        "id": "00000000", "name": "", "scopes": ["learn"], "created": "2026-01-01T00:00:00Z", "expires": None,
        "sha256": "0" * 64,
    }  # fmt: skip
    return {key: value for key, value in (whole | changes).items() if value != "left out"}


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "null", "{", "[" * 100_000, '{"version": 1}', '{"version": 1, "tokens": 3}', '{"tokens": []}',
        '{"version": 2, "tokens": []}',
        *(json.dumps({"version": 1, "tokens": [wrong]}) for wrong in (
            None, [], "x", entry(id=3), entry(id="left out"), entry(scopes=[]), entry(scopes=["everything"]),
            entry(scopes=[[]]), entry(scopes="learn"), entry(sha256=""), entry(sha256="0" * 63 + "G"), entry(name=None),
            entry(expires="soon"), entry(expires=3), entry(expires="2026-01-01T00:00:00"), entry(expires="left out"),
            entry(created=None),
        )),
        json.dumps({"version": 1, "tokens": [entry(), entry()]}),
    ],
)  # fmt: skip
def test_a_file_that_is_not_as_it_must_be_is_refused_and_kept(content, tmp_path):
    (tmp_path / "tokens.json").write_text(json.dumps({"version": 1, "tokens": [entry()]}))
    running = Tokens(tmp_path)
    assert running.needed()
    (tmp_path / "tokens.json").write_text(content)
    for use in (
        running.current,
        Tokens(tmp_path).needed,
        lambda: list_tokens(tmp_path),
        lambda: add_token(tmp_path, SCOPES),
    ):
        with pytest.raises(DamagedTokens) as refused:
            use()
        assert refused.value.path == str(tmp_path / "tokens.json")
    assert (tmp_path / "tokens.json").read_text() == content


def test_an_error_of_the_system_lets_nobody_in_and_passes(tmp_path, monkeypatch):
    text, token = add_token(tmp_path, ["learn"])
    running = Tokens(tmp_path)
    add_token(tmp_path, ["predict"])

    def failing(path):
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(tokens.Path, "read_bytes", failing)
        for _ in range(2):
            with pytest.raises(DamagedTokens, match="Too many open files"):
                running.current()
    assert running.current().find(text.encode()) == token


def test_a_folder_that_cannot_be_looked_at_lets_nobody_in(tmp_path, monkeypatch):
    running = Tokens(tmp_path)

    def failing(path):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(tokens.os, "stat", failing)
        patched.setattr(tokens.Path, "read_bytes", failing)
        with pytest.raises(DamagedTokens, match="Permission denied"):
            running.current()


@pytest.mark.parametrize(
    ("text", "expires"),
    [
        ("never", None),
        ("30d", NOW + timedelta(days=30)),
        ("12h", NOW + timedelta(hours=12)),
        ("2027-01-31", datetime(2027, 2, 1, tzinfo=UTC)),
        ("2027-01-31T12:00Z", datetime(2027, 1, 31, 12, tzinfo=UTC)),
        ("2027-01-31T12:00:00.5+02:00", datetime(2027, 1, 31, 10, tzinfo=UTC)),
        ("2027-01-31 12:00", datetime(2027, 1, 31, 12, tzinfo=UTC)),
    ],
)
def test_when_a_token_expires(text, expires):
    assert parse_expiry(text, NOW) == expires


@pytest.mark.parametrize("text", ["", "soon", "30", "30x", "-3d", "1.5d", "2027-02-30", "9999-12-31", "999999d", "٣d"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(InvalidParameter, match="expires must be 30d, 12h, a day such as 2027-01-31, or never"):
        parse_expiry(text, datetime(9000, 1, 1, tzinfo=UTC))


def test_a_token_expires(tmp_path):
    token = add_token(tmp_path, ["learn"], parse_expiry("1h")).token
    assert not token.has_expired()
    assert not token.has_expired(token.expires.timestamp() - 1)
    assert token.has_expired(token.expires.timestamp())
    assert list_tokens(tmp_path)[0].expires == token.expires
    assert not add_token(tmp_path, ["learn"]).token.has_expired(time.time() + 1e9)


@pytest.mark.parametrize(
    ("scopes", "more", "words"),
    [
        ([], {}, "scope must be predict, learn or administer"),
        (["learn", "everything"], {}, "got 'everything'"),
        (["learn"], {"name": "x" * 101}, "name must be at most 100 characters"),
        (["learn"], {"name": "a\nb"}, "name must be"),
        (["learn"], {"expires": datetime(2020, 1, 1, tzinfo=UTC)}, "expires must be in the future"),
    ],
)
def test_what_is_not_allowed_is_refused_and_nothing_written(scopes, more, words, tmp_path):
    with pytest.raises(InvalidParameter, match=words):
        add_token(tmp_path / "folder", scopes, **more)
    assert not (tmp_path / "folder").exists()


def test_a_folder_that_is_a_file_is_said(tmp_path):
    (tmp_path / "folder").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        add_token(tmp_path / "folder", ["learn"])
    with pytest.raises(NotADirectoryError):
        list_tokens(tmp_path / "folder")


def test_of_commands_at_the_same_moment_none_is_lost(tmp_path):
    code = (
        "import sys; from rosenblatt.serve.tokens import add_token\n"
        "for _ in range(5): add_token(sys.argv[1], ['learn'], name=sys.argv[2])"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(i)]) for i in range(4)]
    assert [process.wait(timeout=60) for process in running] == [0] * 4
    assert sorted(token.name for token in list_tokens(tmp_path)) == sorted("0123" * 5)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (json.dumps({"version": 2, "tokens": []}), "version 2 is not 1"),
        (json.dumps({"version": 1, "tokens": [entry(), entry()]}), "two tokens have the same id"),
    ],
)
def test_what_is_wrong_with_a_list_of_tokens_is_said(content, problem, tmp_path):
    (tmp_path / "tokens.json").write_text(content)
    with pytest.raises(DamagedTokens, match=problem):
        list_tokens(tmp_path)
