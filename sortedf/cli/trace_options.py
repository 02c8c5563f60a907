"""Options of the file of requests, and what every command says that it read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sortedf.cli.common_options import TokenizerOption, TraceArgument
from sortedf.cli.engine_options import EngineOptions
from sortedf.cli.output import note
from sortedf.load import offered_load
from sortedf.traces.format import ROLES
from sortedf.traces.reading import read_reported

if TYPE_CHECKING:
    from sortedf.engine_model import EngineModel
    from sortedf.step_time import StepTime
    from sortedf.traces.read_report import ReadReport
    from sortedf.traces.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions(EngineOptions):
    """An engine and a file of requests; each field is an option."""

    trace: TraceArgument
    tokenizer: TokenizerOption = None
    time_unit: Annotated[
        str | None,
        typer.Option(
            help="Unit of arrival times that are numbers: s, ms, us or ns. Default: as "
            "the format or the column's name says.",
            metavar="UNIT",
        ),
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of a file of no known format: "
            "arrival=created,prefill=in_tokens,decode=out_tokens.",
            metavar="ROLE=NAME,...",
        ),
    ] = None

    def read_file(self) -> FileRead:
        """Read the file, and print what should be checked."""
        trace, report = read_reported(
            self.trace,
            tokenizer=self.tokenizer,
            time_unit=self.time_unit,
            columns=_columns(self.columns),
        )
        for warning in report.warnings():
            note(f"{trace.name}: {warning}")
        return FileRead(trace, report)


@dataclass(frozen=True, slots=True, eq=False)
class FileRead:
    """The requests of a file, and how they were read."""

    trace: Trace
    report: ReadReport

    def about(self, engine: EngineModel, step_time: StepTime) -> dict[str, Any]:
        """Return what was read, for JSON output.

        Parameters
        ----------
        engine : EngineModel
            Requests that can never run in it are `dropped`; `offered_load` is that of
            the others, with the arrivals of the file.
        step_time : StepTime

        Returns
        -------
        dict
            `offered_load` and `time_unit` are None without arrival times.
        """
        trace = self.trace
        span_s = float(trace.arrival_s.max())
        refused = engine.num_refused(trace.prefill, trace.decode)
        return {
            "format": self.report.format,
            "columns": dict(self.report.columns),
            "time_unit": self.report.time_unit or None,
            "requests": trace.num_requests,
            "dropped": refused,
            "span_s": span_s,
            "offered_load": offered_load(trace, engine, step_time) if span_s else None,
        }

    def say(self, engine: EngineModel, step_time: StepTime) -> None:
        """Print what was read in one line on standard error."""
        about = self.about(engine, step_time)
        used = ", ".join(f"{role} {name}" for role, name in about["columns"].items())
        times = "all arrive at once"
        if about["span_s"]:
            unit = about["time_unit"]
            times = f"arrivals ({unit}) over {about['span_s']:,.6g} s"
        if about["offered_load"] is not None:
            times += f", offered load {about['offered_load']:.3g}"
        out = f" ({about['dropped']:,} can never run)" if about["dropped"] else ""
        note(
            f"read {about['requests']:,} requests{out} as {about['format']}: {used}; "
            f"{times}."
        )


def _columns(text: str | None) -> dict[str, str]:
    """Parse names of columns by role."""
    found: dict[str, str] = {}
    for part in (text or "").split(",") if text is not None else ():
        role, equals, name = part.partition("=")
        role, name = role.strip(), name.strip()
        if not equals or not name or role not in ROLES or role in found:
            raise ValueError(
                f"--columns {text}: give ROLE=NAME separated by commas, each of the "
                f"roles {', '.join(ROLES)} at most once."
            )
        found[role] = name
    return found
