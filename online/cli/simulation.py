"""Options of a simulated engine and its arrivals."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sortedf.cli.common_options import DropOversizeOption
from sortedf.cli.trace_options import FileRead, TraceOptions
from sortedf.engine_presets import PRESETS

if TYPE_CHECKING:
    from online.sweep import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation(TraceOptions):
    """A trace, an engine and how requests arrive; each field is an option."""

    DEFAULTS = PRESETS["vllm"]

    step_time: Annotated[
        str,
        typer.Option(
            help="Seconds per step, a preset (a100-llama-3-8b, ...) or a file of "
            "'sortedf calibrate'. Default: steps are the unit of time.",
            metavar="FILE",
        ),
    ] = "1"
    arrivals: Annotated[
        str | None,
        typer.Option(
            help="trace, sessions, poisson, gamma:cv=4, on-off:on_s=30:off_s=30, "
            "batches:size=2000 or at-once. Default: the trace's, else poisson.",
            metavar="KIND",
        ),
    ] = None
    noise: Annotated[
        str | None,
        typer.Option(
            help="Errors of predicted lengths: lognormal:sigma=0.5, biased:factor=2, "
            "rank-preserving, adversarial:factor=10, tau:target=0.5 (a rank of that "
            "Kendall tau_b). Default: none.",
            metavar="KIND",
        ),
    ] = None
    scores: Annotated[
        Path | None,
        typer.Option(
            help="Learned ranks, one per request of the trace: JSON lines with score, "
            "and length if known, as written by 'sortedf rank score -o'."
        ),
    ] = None
    max_wait: Annotated[
        float | None,
        typer.Option(help="Seconds after which a request is served first.", min=0),
    ] = None
    trust_hints: Annotated[
        str,
        typer.Option(
            help="on: predicted lengths and ranks are believed; corrected: by the past "
            "answers of each client; off: they are ignored."
        ),
    ] = "on"
    clients: Annotated[
        Path | None,
        typer.Option(
            help="Text file with the name of each request's client, one per line, for "
            "--trust-hints. Default: all are of one client."
        ),
    ] = None
    drop_oversize: DropOversizeOption = False

    @property
    def inputs(self) -> tuple[Path | str | None, ...]:
        """Files that are read and that no output may overwrite."""
        return self.trace, self.tokenizer, self.scores, self.step_time, self.clients

    def read(
        self, *, has_rate: bool, bound: str, keep_logs: bool
    ) -> tuple[Setting, FileRead]:
        """Read the trace; return what all runs have in common, and what was read."""
        from online.arrivals import default_kind
        from online.hint_trust import make_trust
        from online.named import Named, parse_named
        from online.score_file import read_scores
        from online.sweep import Setting
        from sortedf.step_time import step_time_of

        rules = self.engine_model()
        step_time = step_time_of(self.step_time)
        make_trust(self.trust_hints)  # raises for another word
        file = self.read_file()
        trace = file.trace
        if self.noise is not None and self.scores is not None:
            raise ValueError("give one of --noise and --scores.")
        scores = None
        if self.scores is not None:
            scores = read_scores(self.scores, trace.num_requests)
        if self.arrivals is None:
            arrivals = Named(default_kind(trace, has_rate=has_rate))
        else:
            arrivals = parse_named(self.arrivals)
        setting = Setting(
            trace,
            rules,
            step_time=step_time,
            arrivals=arrivals,
            noise=None if self.noise is None else parse_named(self.noise),
            scores=scores,
            max_wait_s=self.max_wait,
            trust_hints=self.trust_hints,
            clients=self._read_clients(trace.num_requests),
            drop_oversize=self.drop_oversize,
            bound=bound,
            keep_logs=keep_logs,
        )
        file.say(rules, step_time)
        return setting, file

    def _read_clients(self, n: int) -> list[str] | None:
        if self.clients is None:
            return None
        try:
            names = self.clients.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"--clients {self.clients}: {error}.") from None
        if len(names) != n:
            raise ValueError(
                f"--clients {self.clients}: has {len(names)} lines but the trace has "
                f"{n} requests."
            )
        return names
