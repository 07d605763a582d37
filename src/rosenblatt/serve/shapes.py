"""The shapes of requests and answers, as OpenAPI shows them. Bodies with examples are read by `state.py`, which is several
times as fast and names the row; these classes describe the same.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Features = Annotated[
    dict[str, float | int | bool | str] | list[float],
    Field(
        description="Named features, whose values are numbers or text, or a list of numbers.",
        examples=[{"free": 1, "prize": 2.5}],
    ),
]
Text = Annotated[
    str, Field(description="A text: its words, and runs of words, are the features.", examples=["win a free prize"])
]
LabelValue = Annotated[
    str | int | bool | float, Field(description="The label; for regression a number.", examples=["spam"])
]
Weight = Annotated[float, Field(ge=0, description="The weight of the example; with 0 it is ignored.")]
Seq = Annotated[int, Field(description="The number of an entry in the log of the model.", examples=[17])]
Time = Annotated[str, Field(description="Date and time, UTC.", examples=["2026-11-16T12:00:00.000Z"])]


class Shape(BaseModel):
    """A JSON object without further members."""

    model_config = ConfigDict(extra="forbid")


class TextSettings(Shape):
    """How a text becomes features."""

    words: int = Field(2, ge=1, le=5, description="The longest run of words that is a feature.")
    lowercase: bool = True


class ModelSettings(Shape):
    """What a model is made of."""

    learner: str = Field(
        "OnlinePerceptron",
        description="A class of rosenblatt that learns one example at a time.",
        examples=["OnlinePerceptron", "AROW"],
    )
    parameters: dict[str, object] = Field(
        {}, description="Its parameters; a rule is an object.", examples=[{"keep": "average", "rule": {"PA1": {"C": 0.1}}}]
    )
    hashing: int | None = Field(None, ge=2, le=1 << 31, description="Hash named features into so many columns.")
    classes: list[str | int] | None = Field(None, description="All classes, for learners that cannot learn new ones.")
    text: TextSettings | None = None
    file: str | None = Field(None, description="A model file to start from, in base64.")


class RowExample(Shape):
    """An example to learn from, with its features."""

    x: Features
    text: Text | None = None
    y: LabelValue
    w: Weight = 1.0


class TextExample(Shape):
    """An example to learn from, with its text."""

    text: Text
    y: LabelValue
    w: Weight = 1.0


class LateLabel(Shape):
    """The label of a prediction, whose row is learned."""

    id: str = Field(description="The id of a prediction.", examples=["5f0c2a9e-17.0"])
    y: LabelValue
    w: Weight = 1.0


class LearnRequest(Shape):
    """Examples to learn from, in this order."""

    examples: list[RowExample | TextExample | LateLabel] = Field(min_length=1)
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"examples": [{"x": {"free": 1}, "y": "spam", "w": 1.0}, {"text": "see you", "y": "ham"}]}]
        },
    )


class Refusal(Shape):
    """An example that was not learned."""

    row: int
    detail: str


class LearnAnswer(Shape):
    """What was learned; it is on the disk."""

    seq: Seq
    learned: int = Field(description="How many examples were learned.")
    mistakes: int = Field(description="How many of them the learner's last weights did not predict.")
    wrong: int = Field(description="How many of them the model as it was served predicted wrongly.")
    refused: list[Refusal] = []


class RowToPredict(Shape):
    """An example to predict, with its features."""

    x: Features
    text: Text | None = None


class TextToPredict(Shape):
    """An example to predict, with its text."""

    text: Text


class PredictRequest(Shape):
    """Examples to predict."""

    examples: list[RowToPredict | TextToPredict] = Field(min_length=1)
    top: int | None = Field(None, ge=0, description="Answer the scores of so many labels, highest first; by default all.")
    explain: int = Field(0, ge=0, description="Answer so many contributions of features, largest first.")
    store: bool = Field(True, description="Keep the rows, so that their labels can be learned by id later.")
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"examples": [{"x": {"free": 1}}], "explain": 3}]}
    )


class Prediction(Shape):
    """A prediction."""

    label: LabelValue | None = Field(description="null before the first example.")
    scores: dict[str, float]
    id: str | None = Field(description="With it the label can be learned later; null if the row was not stored.")
    intercept: float | None = None
    contributions: list[tuple[str | int, float]] | None = Field(
        None, description="Features and what they add to the score of the label."
    )


class PredictAnswer(Shape):
    """Predictions, in the order of the examples."""

    predictions: list[Prediction]
    seq: Seq


class ModelDescription(Shape):
    """A model."""

    name: str
    learner: str
    parameters: dict[str, object]
    hashing: int | None
    classes: list[LabelValue]
    seq: Seq
    seen: int = Field(description="Examples learned from.")
    mistakes: int = Field(description="Examples that the learner's last weights did not predict.")
    updates: int = Field(description="Changes of the weights.")
    wrong: int = Field(description="Examples that the model as it was served predicted wrongly before it learned them.")
    features: int
    memory_bytes: int
    log_bytes: int
    created: Time
    changed: Time
    snapshots: list[Seq]
    archived: int = Field(0, description="The last entry that was archived; 0 if none was.")
    failure: str | None = Field(None, description="Why the model cannot learn, if it cannot.")


class ModelList(Shape):
    """All models."""

    models: list[ModelDescription]


class LabelCounts(Shape):
    """What happened to the examples of a label."""

    seen: int
    mistakes: int
    wrong: int


class WindowCounts(Shape):
    """What happened in a window of the stream."""

    from_seq: Seq
    seq: Seq
    time: Time
    seen: int
    mistakes: int
    wrong: int
    labels: dict[str, LabelCounts] | None = None


class WrongPrediction(Shape):
    """An example that was predicted wrongly."""

    seq: Seq
    row: int
    time: Time
    label: LabelValue
    predicted: LabelValue | None
    x: Features | None = None
    text: Text | None = None


class HistoryAnswer(Shape):
    """How well a model has been doing."""

    seq: Seq
    windows: list[WindowCounts]
    last_wrong: list[WrongPrediction]


class WeightsAnswer(Shape):
    """The heaviest weights of labels."""

    seq: Seq
    weights: dict[str, list[tuple[str | int, float]]]
    intercepts: dict[str, float]


class SetBackRequest(Shape):
    """The entry after which the model had the state to go back to."""

    to: int = Field(ge=1, examples=[12])


class SetBackAnswer(Shape):
    """The entry that sets the model back."""

    seq: Seq
    to: Seq


class ArchiveTo(Shape):
    """The last entry to archive."""

    to: int = Field(ge=1, examples=[100])


class ArchiveBefore(Shape):
    """Archive the entries before a date, or date and time; UTC where it has no zone."""

    before: str = Field(json_schema_extra={"format": "date"}, examples=["2026-10-31"])


class ArchiveAnswer(Shape):
    """What was archived."""

    first: Seq
    last: Seq
    file: str = Field(description="The name of the file in the folder `archive`.")
    bytes: int = Field(description="Of its lines, which are compressed.")
    digest: str = Field(description="XXH64 of its lines.")


class ImportAnswer(Shape):
    """What was imported."""

    seq: Seq
    entries: int


class Status(Shape):
    """Whether the server works."""

    status: Literal["ok", "stopping", "not learning"]
    reason: str | None = None


class Problem(BaseModel):
    """An error (RFC 9457), with the facts that it has."""

    type: str = Field(examples=["urn:rosenblatt:problem:invalid-data"])
    title: str
    status: int
    detail: str
    model_config = ConfigDict(extra="allow")
