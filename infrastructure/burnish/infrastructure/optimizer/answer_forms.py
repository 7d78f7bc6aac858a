"""The answers of the optimizer's roles besides patches: their forms, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, TypeVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from burnish.application.optimizer_ports import Ranking, RateDecision, Rewrite
from burnish.domain.edits import Edit, EditOp, Patch
from burnish.domain.regions import without_markers
from burnish.infrastructure.optimizer.answer_fields import (
    NUMBER,
    TEXT,
    WHOLE_NUMBER,
    Count,
    LenientText,
    Remark,
    count_of,
    list_of,
    number_of,
    readable,
    strict_object,
)
from burnish.infrastructure.optimizer.asking import AnswerForm
from burnish.infrastructure.optimizer.json_finding import UnreadableAnswerError, Wanted, find_object
from burnish.infrastructure.optimizer.literal_text import TargetDocument, whole_skill
from burnish.infrastructure.optimizer.note_reading import NOTE_KEYS, Notes
from burnish.infrastructure.optimizer.patch_schema import PATCH_SCHEMA, SCHEMA_NAME

PATCH_FORM: Final = AnswerForm(SCHEMA_NAME, PATCH_SCHEMA)

SUGGESTIONS_FORM: Final = AnswerForm(
    "suggestions",
    strict_object(
        {
            "reasoning": TEXT,
            "suggestions": list_of(
                strict_object({"title": TEXT, "motivation": TEXT, "instruction": TEXT, "support": WHOLE_NUMBER})
            ),
        }
    ),
)
WHOLE_SKILL_FORM: Final = AnswerForm(
    "whole_skill", strict_object({"reasoning": TEXT, "changes": list_of(TEXT), "skill": TEXT})
)
RANKING_FORM: Final = AnswerForm("ranking", strict_object({"reasoning": TEXT, "order": list_of(WHOLE_NUMBER)}))
RATE_FORM: Final = AnswerForm(
    "learning_rate",
    strict_object({"reasoning": TEXT, "learning_rate": WHOLE_NUMBER, "confidence": NUMBER, "risks": TEXT}),
)
GUIDANCE_FORM: Final = AnswerForm("guidance", strict_object({"verdict": TEXT, "reasoning": TEXT, "guidance": TEXT}))
MEMORY_FORM: Final = AnswerForm("memory", strict_object({"reasoning": TEXT, "memory": TEXT}))

Model = TypeVar("Model", bound=BaseModel)


def _suggestions(value: object) -> object:
    return readable(value, SuggestionAnswer)


def _said(value: str) -> str:
    if not value.strip():
        raise ValueError("says nothing")
    return value


class _Answer(BaseModel):
    """An answer as a model writes it; keys beside its fields are ignored."""

    model_config = ConfigDict(frozen=True)


class SuggestionAnswer(_Answer):
    """One suggestion; without an instruction it is none."""

    title: LenientText = ""
    motivation: LenientText = ""
    instruction: Annotated[
        LenientText, BeforeValidator(lambda value: _said(value) if isinstance(value, str) else value)
    ]
    support: Annotated[Count, Field(validation_alias=AliasChoices("support", "support_count"))] = None


class SuggestionsAnswer(_Answer):
    """Suggestions; the list must be there, empty or with at least one that is readable: others are dropped."""

    reasoning: Remark = ""
    suggestions: Annotated[tuple[SuggestionAnswer, ...], BeforeValidator(_suggestions)]
    notes: Notes = ()


class WholeSkillAnswer(_Answer):
    """A whole new skill."""

    reasoning: Remark = ""
    changes: Remark = ""
    skill: LenientText
    notes: Notes = ()


class RankingAnswer(_Answer):
    """An order of numbers; which of them are places is for the reader to say."""

    reasoning: Remark = ""
    order: tuple[object, ...]


class RateAnswer(_Answer):
    """How many changes to make."""

    reasoning: Remark = ""
    learning_rate: Count
    confidence: Annotated[float | None, BeforeValidator(number_of)] = None
    risks: Remark = ""


class GuidanceAnswer(_Answer):
    """Guidance, and what its writer makes of the previous one."""

    verdict: Remark = ""
    reasoning: Remark = ""
    guidance: LenientText


class MemoryAnswer(_Answer):
    """The optimizer's whole memory."""

    reasoning: Remark = ""
    memory: LenientText


_SUGGESTIONS = Wanted(
    key="suggestions",
    described="a list of suggestions",
    keys=frozenset({*SuggestionsAnswer.model_fields, *NOTE_KEYS}),
    holds=lambda value: isinstance(value, list),
    element_keys=frozenset({*SuggestionAnswer.model_fields, "support_count"}),
    marked_by="instruction",
)
_WHOLE_SKILL = Wanted(key="skill", described="a text under the key skill")  # too long a text to be repaired by guesses
_ORDER = Wanted(
    key="order",
    described="a list of numbers under the key order",
    keys=frozenset(RankingAnswer.model_fields),
    holds=lambda value: isinstance(value, list),
)
_RATE = Wanted(
    key="learning_rate",
    described="a number under the key learning_rate",
    keys=frozenset(RateAnswer.model_fields),
    holds=lambda value: number_of(value) is not None,
)
_GUIDANCE = Wanted(
    key="guidance", described="a text under the key guidance", keys=frozenset(GuidanceAnswer.model_fields)
)
_MEMORY = Wanted(key="memory", described="a text under the key memory", keys=frozenset(MemoryAnswer.model_fields))


def read_suggestions(text: str) -> Patch:
    """The suggestions, as edits that suggest: the title is the target, the content says what to do and why.

    An explicit empty list is an empty patch. Raises UnreadableAnswerError, as all readers here do, and nothing else.
    """
    answer = _read(text, _SUGGESTIONS, SuggestionsAnswer, "none of its suggestions has an instruction")
    return Patch(tuple(map(_suggestion, answer.suggestions)), answer.reasoning, answer.notes)


def read_whole_skill(text: str, skill: str) -> Rewrite:
    """The new skill that is to take the place of `skill`, and its changes; an answer without any text in it is refused."""
    return _rewrite(_read(text, _WHOLE_SKILL, WholeSkillAnswer, _WHOLE_SKILL.nothing), skill)


def read_whole_patch(text: str, skill: str) -> Patch:
    """The same as the one edit that takes the skill's place; its reasoning tells the changes."""
    answer = _read(text, _WHOLE_SKILL, WholeSkillAnswer, _WHOLE_SKILL.nothing)
    rewrite = _rewrite(answer, skill)
    return Patch((Edit(EditOp.REWRITE, content=rewrite.skill),), rewrite.summary, answer.notes)


def _rewrite(answer: WholeSkillAnswer, skill: str) -> Rewrite:
    written = whole_skill(answer.skill, skill)
    if not written:
        raise UnreadableAnswerError("the skill in it is empty")
    return Rewrite(skill=written, summary="\n\n".join(filter(None, (answer.reasoning, answer.changes))))


def read_ranking(text: str, number: int) -> Ranking:
    """The places among `number` that are ones, each once; an answer without any is refused."""
    answer = _read(text, _ORDER, RankingAnswer, _ORDER.nothing)
    places = [_place(value) for value in answer.order]
    valid = tuple(dict.fromkeys(place for place in places if place is not None and place < number))
    if not valid:
        raise UnreadableAnswerError(f"its order holds no number from 0 to {number - 1}")
    return Ranking(places=valid, reasoning=answer.reasoning)


def read_rate(text: str) -> RateDecision:
    """The decision; a confidence that does not lie in [0, 1] is none."""
    answer = _read(text, _RATE, RateAnswer, _RATE.nothing)
    confidence = answer.confidence
    return RateDecision(
        learning_rate=answer.learning_rate or 0,
        reasoning=answer.reasoning,
        confidence=confidence if confidence is not None and 0.0 <= confidence <= 1.0 else None,
        risks=answer.risks,
    )


def read_guidance(text: str) -> str:
    """The guidance, without markers; empty when there is none to give."""
    answer = _read(text, _GUIDANCE, GuidanceAnswer, _GUIDANCE.nothing)
    return without_markers(_plain(answer.guidance)).strip()


def read_memory(text: str) -> str:
    """The memory."""
    return _plain(_read(text, _MEMORY, MemoryAnswer, _MEMORY.nothing).memory).strip()


def _read(text: str, wanted: Wanted, model: type[Model], problem: str) -> Model:
    found: Mapping[str, object] = find_object(text, wanted)
    try:
        return model.model_validate(found)
    except ValidationError:
        raise UnreadableAnswerError(problem) from None


def _suggestion(answer: SuggestionAnswer) -> Edit:
    instruction, motivation = _plain(answer.instruction).strip(), _plain(answer.motivation).strip()
    content = f"{instruction}\n\nWhy: {motivation}" if motivation else instruction
    title = " ".join(answer.title.split()) or instruction.partition("\n")[0]
    return Edit(
        EditOp.SUGGEST,
        content=without_markers(content),
        target=without_markers(title),
        support_count=answer.support,
    )


def _plain(text: str) -> str:
    return TargetDocument(None).with_line_breaks(text)


def _place(value: object) -> int | None:
    """The place a value names: a whole number from 0 on."""
    number = number_of(value)
    return None if number is None or number < 0 or number != int(number) else count_of(value)
