"""A token is a secret that a client sends with each request; the folder of a server keeps only its SHA-256.

The tokens of a folder are in its file tokens.json. As long as that file exists, every request needs one of them, even if
the list is empty: removing the last token lets nobody in, it does not let everybody in. A server that has seen the file
needs it until it stops, so that a file which vanishes or is damaged lets nobody in either.
"""

from __future__ import annotations

import errno
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from rosenblatt.errors import DamagedTokens, InvalidParameter, OutputError
from rosenblatt.modelfile.atomic import atomic_write

try:
    import fcntl
except ImportError:  # not on Windows, where two commands at the same moment can lose one of two changes
    fcntl = None  # type: ignore[assignment]  # a module elsewhere

FILE = "tokens.json"
SCOPES = ("predict", "learn", "administer")
_VERSION = 1
_PREFIX = b"rb"
_ID_BYTES = 4  # 8 letters: enough to tell tokens apart, and no secret
_SECRET_BYTES = 32  # 43 characters; so many random bits need no salt and no slow hash
_LONGEST_NAME = 100
_LONGEST_TEXT = 100  # characters of what could be a token; a real one has 55
_NO_DIGEST = sha256(b"no secret has this").hexdigest()
_UNITS = {"h": "hours", "d": "days"}


class Token(NamedTuple):
    """A token as the folder keeps it.

    Parameters
    ----------
    id : str
        The part of the token that is no secret and that names it.
    name : str
        What it is for, in the words of whoever made it.
    scopes : tuple of str
        What it allows: "predict", "learn", "administer".
    created : datetime
        When it was made.
    expires : datetime or None
        When it ends to be valid; None is never.
    digest : str
        The SHA-256 of the secret, in hexadecimal digits.
    """

    id: str
    name: str
    scopes: tuple[str, ...]
    created: datetime
    expires: datetime | None
    digest: str

    def allows(self, scope: str) -> bool:
        """Return whether the token allows what needs this scope; "administer" allows everything."""
        return scope in self.scopes or "administer" in self.scopes

    def has_expired(self, now: float | None = None) -> bool:
        """Return whether the token is not valid any more at a time in seconds since 1970, by default now."""
        return self.expires is not None and self.expires.timestamp() <= (time.time() if now is None else now)


class NewToken(NamedTuple):
    """A token that was just made, and its text, which nobody can find out later."""

    text: str
    token: Token


def add_token(
    folder: str | os.PathLike[str], scopes: Collection[str], expires: datetime | None = None, name: str = ""
) -> NewToken:
    """Add a token to the folder of a server; the folder is made if there is none.

    Parameters
    ----------
    folder : path
        The folder of the server.
    scopes : collection of str
        What the token allows: "predict", "learn", "administer".
    expires : datetime, optional
        When it ends to be valid; None is never.
    name : str
        What it is for.

    Returns
    -------
    NewToken
        The token and its text. The text is kept nowhere.

    Raises
    ------
    InvalidParameter
        If a scope is unknown or there is none, or if the time has passed.
    DamagedTokens
        If the tokens that the folder has cannot be read.
    OutputError
        If the file cannot be written.
    """
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        raise InvalidParameter("scope", unknown[0] if unknown else list(scopes), "predict, learn or administer")
    now = datetime.now(UTC).replace(microsecond=0)
    if expires is not None and expires <= now:
        raise InvalidParameter("expires", time_text(expires), "in the future")
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidParameter("name", name, f"at most {_LONGEST_NAME} characters that can be printed")
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    ordered = tuple(scope for scope in SCOPES if scope in scopes)
    with _changing(Path(folder)) as tokens:
        number = next(text for text in iter(lambda: secrets.token_hex(_ID_BYTES), None) if text not in tokens)
        token = Token(number, name, ordered, now, expires, _digest(secret))
        tokens[number] = token
    return NewToken(f"{_PREFIX.decode()}_{number}_{secret}", token)


def list_tokens(folder: str | os.PathLike[str]) -> list[Token]:
    """Return the tokens of a folder, the oldest first.

    Parameters
    ----------
    folder : path
        The folder of the server.

    Returns
    -------
    list of Token
        The tokens; none if the folder has no file of tokens.

    Raises
    ------
    NotADirectoryError
        If there is no such folder.
    DamagedTokens
        If the file of tokens cannot be read.
    """
    if not os.path.isdir(folder):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(folder))
    return list(_load_tokens(Path(folder) / FILE).values())


def remove_token(folder: str | os.PathLike[str], id: str) -> Token:
    """Remove a token from a folder; servers refuse it from then on.

    Parameters
    ----------
    folder : path
        The folder of the server.
    id : str
        The id of the token, or its whole text.

    Returns
    -------
    Token
        The token that was removed.

    Raises
    ------
    InvalidParameter
        If the folder has no such token.
    NotADirectoryError
        If there is no such folder.
    DamagedTokens
        If the file of tokens cannot be read.
    OutputError
        If the file cannot be written.
    """
    number = id.split("_")[1] if id.startswith(f"{_PREFIX.decode()}_") else id
    if not list_tokens(folder):  # nothing is written into a folder without tokens
        raise InvalidParameter("id", number, None, "the folder has no tokens")
    with _changing(Path(folder)) as tokens:
        if number not in tokens:
            raise InvalidParameter("id", number, f"the id of a token: {', '.join(tokens)}")
        return tokens.pop(number)


def parse_expiry(text: str, now: datetime | None = None) -> datetime | None:
    """Return the time at which a token ends to be valid.

    Parameters
    ----------
    text : str
        "30d" or "12h" from now, the last day on which it is valid as "2027-01-31", a time as "2027-01-31T12:00Z", or
        "never". Days and times without a zone are those of UTC.
    now : datetime, optional
        The time from which hours and days count.

    Returns
    -------
    datetime or None
        The time; None is never.

    Raises
    ------
    InvalidParameter
        If the text is none of these, or the time has passed.
    """
    if text == "never":
        return None
    now = (now or datetime.now(UTC)).replace(microsecond=0)
    try:
        if found := re.fullmatch(r"([0-9]{1,6})([hd])", text):
            time = now + timedelta(**{_UNITS[found[2]]: int(found[1])})
        elif re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            time = datetime.fromisoformat(text).replace(tzinfo=UTC) + timedelta(days=1)
        else:
            time = datetime.fromisoformat(text)
            time = (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        raise InvalidParameter("expires", text, "30d, 12h, a day such as 2027-01-31, or never") from None
    if time <= now:
        raise InvalidParameter("expires", text, "in the future")
    return time


class TokenList(NamedTuple):
    """The tokens of a folder at one moment, by id."""

    tokens: Mapping[str, Token]

    def find(self, text: bytes) -> Token | None:
        """Return the token that has this text, even if it has expired; None if there is none.

        It takes as long for a wrong secret as for the right one.
        """
        prefix, _, rest = text.partition(b"_")
        number, _, secret = rest.partition(b"_")
        token = self.tokens.get(number.decode("latin-1")) if len(text) <= _LONGEST_TEXT else None
        digest = _NO_DIGEST if token is None else token.digest
        same = hmac.compare_digest(sha256(secret).hexdigest(), digest)
        return token if same and prefix == _PREFIX else None


class Tokens:
    """The tokens of a running server; the file is read again whenever it has changed.

    Parameters
    ----------
    folder : path
        The folder of the server.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self._path = os.path.join(folder, FILE)
        self._version: object = ()  # of the file that was read: none yet
        self._known: TokenList | None = None
        self._damage: DamagedTokens | None = None
        self._refresh()

    def current(self) -> TokenList | None:
        """Return the tokens that there are now.

        Returns
        -------
        TokenList or None
            None if requests need no token: if the folder has no file of tokens, and had none since the start.

        Raises
        ------
        DamagedTokens
            If the file cannot be read.
        """
        self._refresh()
        if self._damage is not None:
            raise self._damage.with_traceback(None)
        return self._known

    def needed(self) -> bool:
        """Return whether requests need a token; `DamagedTokens` if the file cannot be read."""
        return self.current() is not None

    def _refresh(self) -> None:
        """Read the file again if it is another than the one that was read."""
        version: object
        try:
            status = os.stat(self._path)
            version = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        except FileNotFoundError:
            version = None
        except OSError:
            version = ()
        if version == self._version and version != ():
            return
        self._version = version
        try:
            tokens = _load_tokens(Path(self._path))
        except DamagedTokens as damage:
            self._known, self._damage = TokenList({}), damage
            if isinstance(damage.__cause__, OSError):  # too many open files, for one: the next request tries again
                self._version = ()
        else:
            is_open = version is None and self._known is None
            self._known, self._damage = None if is_open else TokenList(tokens), None


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


@contextmanager
def _changing(folder: Path) -> Iterator[dict[str, Token]]:
    """Let a block change the tokens of a folder, by id, and write them; no other process does so at the same time."""
    path = folder / FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / "tokens.lock", os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise OutputError(f"cannot be written: {error.strerror}", path, error.errno) from error
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        tokens = _load_tokens(path)
        if path.exists():
            path.chmod(0o600)  # a file that takes the place of another gets its permissions
        yield tokens
        with atomic_write(path) as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), 0o600)
            content = {"version": _VERSION, "tokens": [_as_json(token) for token in tokens.values()]}
            file.write(json.dumps(content, indent=1).encode() + b"\n")
    finally:
        os.close(lock)


def _as_json(token: Token) -> dict[str, object]:
    return {
        "id": token.id, "name": token.name, "scopes": list(token.scopes), "created": time_text(token.created),
        "expires": None if token.expires is None else time_text(token.expires), "sha256": token.digest,
    }  # fmt: skip


def time_text(time: datetime) -> str:
    """Return a time as text: 2027-01-31T12:00:00Z."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _load_tokens(path: Path) -> dict[str, Token]:
    """The tokens in a file, by id; none if there is no file. DamagedTokens if it is not what it must be."""
    hint = "restore the file, or move it away and add new tokens"
    try:
        content = json.loads(path.read_bytes())
        version, tokens = content["version"], [_from_json(entry) for entry in content["tokens"]]
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise DamagedTokens(f"the tokens cannot be read: {error.strerror}", path=path) from error
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise DamagedTokens("the file is not a list of tokens, or it is damaged", path=path, hint=hint) from error
    if version != _VERSION or len({token.id for token in tokens}) < len(tokens):
        problem = "two tokens have the same id" if version == _VERSION else f"version {version!r} is not {_VERSION}"
        raise DamagedTokens(problem, path=path, hint=hint)
    return {token.id: token for token in tokens}


def _from_json(entry: Mapping[str, object]) -> Token:
    """A token as the file has it; ValueError or TypeError if something is not as it must be."""
    number, name, scopes, digest = (entry[key] for key in ("id", "name", "scopes", "sha256"))
    if not (isinstance(number, str) and isinstance(name, str) and isinstance(digest, str) and isinstance(scopes, list)):
        raise TypeError("a member has the wrong type")
    if not re.fullmatch("[0-9a-f]{64}", digest) or not scopes or not set(scopes) <= set(SCOPES):
        raise ValueError("a member has a value that is not allowed")
    created, expires = (
        None if entry[key] is None else datetime.fromisoformat(str(entry[key])) for key in ("created", "expires")
    )
    if created is None or created.tzinfo is None or (expires is not None and expires.tzinfo is None):
        raise ValueError("a time has no zone")
    return Token(number, name, tuple(scopes), created, expires, digest)
