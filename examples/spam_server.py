"""A spam filter behind a server that is killed in the middle, and loses nothing.

    python examples/spam_server.py [sms_spam.tsv.gz]

Messages are predicted as they come. Their labels come later, a hundred messages behind, some at a time, and are sent by the
ids of the predictions. Half way the server is killed (SIGKILL) and started again while the messages go on: the client sends
again what got no answer, with the same key. At the end every label was learned once, and the log alone gives the same
model, byte for byte.

The file has a label, a tab and a message on each line, as the SMS Spam Collection of Almeida and Hidalgo has; without one,
some messages are made up.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from tempfile import TemporaryDirectory

from rosenblatt.serve import Client, replay

SPAM = ("win {} now", "free {} for you", "claim your {} today", "urgent: your {} is waiting", "{} winner, call now")
HAM = ("see you at {}", "lunch at {}?", "are you home, {} called", "the {} is on the table", "call me about the {}")
PRIZES, THINGS = ("cash", "prize", "phone", "holiday", "ringtone"), ("noon", "home", "school", "mum", "book", "office")
DELAY, TOGETHER = 100, 25  # messages until a label is known, and labels that come at a time


def read(path: str | None) -> list[tuple[str, str]]:
    """Return (label, message) pairs, of a file or made up."""
    if path is None:
        chance = random.Random(0)
        pairs = [("spam", SPAM, PRIZES), ("ham", HAM, THINGS)]
        chosen = [chance.choice(pairs) for _ in range(400)]
        return [(label, chance.choice(forms).format(chance.choice(words))) for label, forms, words in chosen]
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as lines:
        return [tuple(line.rstrip("\n").split("\t", 1)) for line in lines]


class Server:
    """A server in a process of its own, which can be killed and started again at the same address."""

    def __init__(self, folder: str):
        self.folder, self.port = folder, 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "rosenblatt", "serve", self.folder, "--port", str(self.port), "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.port = int(self.url.rpartition(":")[2])

    def end(self, kill: bool = False) -> None:
        (self.process.kill if kill else self.process.terminate)()
        self.process.wait()
        self.process.stdout.close()

    def kill_and_start(self) -> None:
        self.end(kill=True)
        self.start()


def stream(messages: list[tuple[str, str]], server: Server, client: Client) -> list[bool]:
    """Predict each message and learn its label later; return which predictions were wrong."""
    model = client.create("sms", parameters={"keep": "average"})
    accident = threading.Thread(target=server.kill_and_start)
    waiting: deque[tuple[str, str]] = deque()
    wrong = []
    for number, (label, text) in enumerate(messages):
        if number == len(messages) // 2:
            accident.start()
        prediction = model.predict_with_id(text)
        wrong.append(prediction.label != label)
        waiting.append((prediction.id, label))
        if len(waiting) >= DELAY + TOGETHER:
            model.learn_labels(*zip(*(waiting.popleft() for _ in range(TOGETHER)), strict=True))
    accident.join()
    model.learn_labels(*zip(*waiting, strict=True))
    return wrong


def main(path: str | None = None) -> None:
    messages = read(path)
    with TemporaryDirectory() as folder:
        server = Server(str(Path(folder) / "models"))
        try:
            with Client(server.url, retries=30) as client:
                wrong = stream(messages, server, client)
                size = -(-len(wrong) // 8)
                print("messages    wrong when predicted, labels 100 messages late")
                for begin in range(0, len(wrong), size):
                    window = wrong[begin : begin + size]
                    print(f"{begin + 1:>6,}–{begin + len(window):<6,} {sum(window) / len(window):6.1%}")
                model = client.model("sms")
                description = model.describe()
                print(f"{len(messages):,} messages, {description['seen']:,} learned, in {description['seq']:,} log entries")
                model.save(Path(folder) / "served.model")
                model.export_log(Path(folder) / "log.jsonl")
        finally:
            server.end()
        with open(Path(folder) / "log.jsonl", "rb") as lines:
            replay(lines).save(Path(folder) / "replayed.model")
        same = (Path(folder) / "served.model").read_bytes() == (Path(folder) / "replayed.model").read_bytes()
        print(f"killed once; lost: {len(messages) - description['seen']}; the replayed log gives the same bytes: {same}")
        if not same or description["seen"] != len(messages):
            sys.exit("the server has not kept its promise")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
