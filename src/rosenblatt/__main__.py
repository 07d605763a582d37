"""`python -m rosenblatt` is `rosenblatt`."""

from rosenblatt.cli import command

if __name__ == "__main__":
    command()
