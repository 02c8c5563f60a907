"""`sortedf rank`: rank prompts by expected answer length."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sortedf.atomic import atomic_path, refuse_unwritable
from sortedf.cli.common_options import SeedOption
from sortedf.cli.output import JsonOption, note, print_json, print_table
from sortedf.cli.progress import progress

if TYPE_CHECKING:
    from online.ranking.rows import Prompts, Rows
    from online.ranking.training import Training

HELP = "Rank prompts by expected answer length: train, evaluate, score."
EXAMPLE = (
    "Example: sortedf rank train answers.jsonl -o ranker && "
    "sortedf rank score ranker prompts.jsonl"
)

app = typer.Typer(help=HELP, epilog=EXAMPLE, no_args_is_help=True)

DataArgument = Annotated[
    Path,
    typer.Argument(
        help="Prompts with answer lengths: JSON lines with prompt and response_tokens, "
        "Alpaca or ShareGPT JSON, OpenAI batch output, vLLM benchmark result."
    ),
]
RankerArgument = Annotated[
    Path, typer.Argument(help="Folder written by `sortedf rank train`.")
]
PromptsOption = Annotated[
    Path | None,
    typer.Option(
        "--prompts",
        help="If DATA has no prompts: the batch's input file, or the benchmark's data "
        "set in the order of the benchmark (--disable-shuffle).",
    ),
]
TokenizerOption = Annotated[
    Path | None,
    typer.Option(help="tokenizer.json or its folder, to count tokens of answers."),
]
ModelOption = Annotated[
    str | None,
    typer.Option(help="Model whose answers to use, if there are several."),
]
DeviceOption = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ...")]


@app.command(
    epilog="Example: sortedf rank train answers.jsonl --encoder bert-base-uncased "
    "--max-tokens 128 -o ranker"
)
def train(
    data: DataArgument,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder to write the ranker to.")
    ],
    prompts: PromptsOption = None,
    model: ModelOption = None,
    tokenizer: TokenizerOption = None,
    encoder: Annotated[
        str, typer.Option(help="Folder of a BERT-like encoder, or its hub name.")
    ] = "bert-base-uncased",
    loss: Annotated[
        str, typer.Option(help="pairwise, pointwise or listwise.")
    ] = "pairwise",
    delta: Annotated[
        float,
        typer.Option(help="Least relative difference of the two lengths of a pair."),
    ] = 0.2,
    margin: Annotated[
        float, typer.Option(help="Required difference of the scores of a pair.")
    ] = 1.0,
    max_tokens: Annotated[int, typer.Option(help="Tokens of a prompt at most.")] = 256,
    truncation: Annotated[
        str, typer.Option(help="Part of longer prompts: head-tail, head or tail.")
    ] = "head-tail",
    layers: Annotated[
        int | None, typer.Option(help="Number of the encoder's first layers to use.")
    ] = None,
    frozen_layers: Annotated[
        int, typer.Option(help="Number of lowest layers not trained: much faster.")
    ] = 0,
    epochs: Annotated[int, typer.Option(help="Epochs at most.")] = 10,
    patience: Annotated[
        int, typer.Option(help="Epochs without improvement before training ends.")
    ] = 3,
    batch_size: Annotated[int, typer.Option(help="Prompts of a batch.")] = 16,
    learning_rate: Annotated[
        float, typer.Option(help="Largest learning rate of the encoder.")
    ] = 3e-5,
    validation: Annotated[
        float, typer.Option(help="Share of the prompts for validation.")
    ] = 0.1,
    test: Annotated[
        float, typer.Option(help="Share of the prompts for the final test.")
    ] = 0.2,
    seed: SeedOption = 0,
    rivals: Annotated[
        bool, typer.Option(help="Also train simple baselines on the same prompts.")
    ] = True,
    device: DeviceOption = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Train a ranker; an interrupted run resumes when it is started again."""
    from online.ranking.evaluation import rival_tau_b
    from online.ranking.folder import refuse_folder
    from online.ranking.row_reading import read_rows
    from online.ranking.rows import prompts_of
    from online.ranking.training import train as train_ranker
    from online.ranking.training_settings import TrainingSettings

    settings = TrainingSettings(
        encoder, loss, delta, margin, max_tokens, truncation, layers, frozen_layers,
        epochs, patience, batch_size, learning_rate, seed, validation, test,
    )  # fmt: skip
    rows = read_rows(data, prompts=prompts, tokenizer=tokenizer)
    _note_failed(rows)
    chosen = prompts_of(rows, model)
    refuse_folder(output)
    checkpoint = output.with_name(f"{output.name}.checkpoint")
    refuse_unwritable(checkpoint)
    with progress("training") as report:
        training = train_ranker(
            chosen,
            settings,
            device=device,
            checkpoint=checkpoint,
            on_step=report,
            on_epoch=lambda epoch: note(_epoch_line(epoch, epochs)),
        )
    if rivals and test > 0:
        training.card["rivals"] = rival_tau_b(training)
    training.save(output)
    checkpoint.unlink(missing_ok=True)
    if as_json:
        print_json(_train_json(training, output))
    else:
        _print_training(training, output)


@app.command(epilog="Example: sortedf rank evaluate ranker answers.jsonl --model gpt-4")
def evaluate(
    ranker: RankerArgument,
    data: DataArgument,
    prompts: PromptsOption = None,
    model: ModelOption = None,
    tokenizer: TokenizerOption = None,
    seen: Annotated[
        bool,
        typer.Option(
            "--seen", help="Include prompts of the training, which is too favourable."
        ),
    ] = False,
    device: DeviceOption = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Compare the ranker's order with true lengths, on prompts not used in training."""
    from online.ranking import load_ranker
    from online.ranking.evaluation import evaluate as judge
    from online.ranking.evaluation import unseen
    from online.ranking.folder import seen_prompts
    from online.ranking.row_reading import read_rows
    from online.ranking.rows import prompts_of

    loaded = load_ranker(ranker, device)
    rows = read_rows(data, prompts=prompts, tokenizer=tokenizer)
    _note_failed(rows)
    chosen = every = prompts_of(rows, model)
    if not seen:
        chosen = unseen(every, seen_prompts(ranker))
    found = judge(loaded, chosen)
    left_out = len(every) - len(chosen)
    if as_json:
        print_json({**found.as_dict(), "seen_left_out": left_out, "model": every.model})
        return
    print_table(
        _title(every, len(chosen), left_out),
        ["ranker", "tau_b", "90 % between", "pairs right", "prompt length's tau_b",
         "true / median", "below P90"],
        [[
            str(ranker), f"{found.tau_b:.3f}",
            f"{found.tau_b_low:.3f} and {found.tau_b_high:.3f}",
            "-" if found.pairs_right is None else f"{found.pairs_right:.1%}",
            f"{found.prompt_length_tau_b:.3f}", f"{found.median_ratio:.2f}",
            f"{found.below_p90:.1%}",
        ]],
    )  # fmt: skip


@app.command(
    epilog="Example: sortedf rank score ranker prompts.jsonl -o scores.jsonl; "
    "or one prompt: sortedf rank score ranker --text 'Why is the sky blue?'"
)
def score(
    ranker: RankerArgument,
    data: Annotated[
        Path | None,
        typer.Argument(
            help="JSON lines with prompt, or .txt with one prompt per line."
        ),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option(help="A prompt; can be given several times.")
    ] = None,
    quantile: Annotated[
        float, typer.Option(help="Quantile of the answer length to show.")
    ] = 0.5,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="JSON lines to write, one per prompt."),
    ] = None,
    device: DeviceOption = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Score prompts, in their order; a higher score predicts a longer answer."""
    from online.ranking import load_ranker
    from online.ranking.row_reading import read_prompts

    if (data is None) == (not text):
        raise ValueError("give either a file of prompts or --text.")
    refuse_unwritable(output, inputs=[data])
    loaded = load_ranker(ranker, device)
    prompts = read_prompts(data) if data is not None else list(text or [])
    with progress("scoring") as report:
        scores: list[float] = []
        for begin in range(0, len(prompts), SCORED_AT_ONCE):
            part = prompts[begin : begin + SCORED_AT_ONCE]
            scores += loaded.score(part).tolist()
            report(len(scores), len(prompts))
    lengths = loaded.lengths(scores, quantile).tolist()
    if output is not None:
        lines = [
            json.dumps({"score": score, "length": length})
            for score, length in zip(scores, lengths, strict=True)
        ]
        with atomic_path(output) as unfinished:
            unfinished.write_text("\n".join(lines) + "\n", encoding="utf-8")
    content = {"n": len(scores), "quantile": quantile}
    if as_json:
        print_json({**content, "scores": scores, "lengths": lengths})
    elif output is not None:
        print(f"{output}: {len(scores):,} scores")
    else:
        _print_scores(prompts, scores, lengths, quantile)


SCORED_AT_ONCE = 1024
"""Prompts between two reports of progress."""


def _note_failed(rows: Rows) -> None:
    if rows.num_failed:
        note(f"{rows.name}: {rows.num_failed:,} failed requests have no length.")


def _epoch_line(epoch: dict[str, float], most: int) -> str:
    return (
        f"epoch {epoch['epoch']:.0f} of at most {most}: loss {epoch['loss']:.4f}, "
        f"tau_b on validation {epoch['tau_b']:.3f}"
    )


def _train_json(training: Training, output: Path) -> dict[str, Any]:
    card = training.card
    return {
        "path": str(output),
        "tau_b": card["tau_b"]["test"],
        "validation_tau_b": card["tau_b"]["validation"],
        "rivals": card.get("rivals"),
        **card["trained_on"],
        "best_epoch": card["best_epoch"],
        "loss": card["settings"]["loss"],
        "seed": card["settings"]["seed"],
    }


def _print_training(training: Training, output: Path) -> None:
    card = training.card
    on = card["trained_on"]
    model = f" of {on['model']}" if on["model"] else ""
    title = (
        f"{output}: trained on {on['train_prompts']:,} prompts of {on['data']}{model}, "
        f"best after epoch {card['best_epoch']}\n"
        f"tau_b on {on['test_prompts']:,} prompts not used in training"
    )
    figures = {card["settings"]["loss"]: card["tau_b"]["test"]}
    figures |= card.get("rivals", {})
    rows = [
        [name, "-" if tau is None else f"{tau:.3f}"] for name, tau in figures.items()
    ]
    print_table(title, ["ranked by", "tau_b"], rows)


def _title(every: Prompts, judged: int, left_out: int) -> str:
    model = f", answers of {every.model}" if every.model else ""
    note_ = f"; {left_out:,} seen in training left out" if left_out else ""
    return f"{every.name}{model}: {judged:,} prompts{note_}"


def _print_scores(
    prompts: list[str], scores: list[float], lengths: list[float], quantile: float
) -> None:
    rows = [
        [str(i), f"{score:.3f}", f"{length:,.0f}", _start_of(prompt)]
        for i, (prompt, score, length) in enumerate(
            zip(prompts, scores, lengths, strict=True)
        )
    ]
    columns = ["prompt", "score", f"P{100 * quantile:g} of tokens", "text"]
    print_table(f"{len(rows):,} prompts", columns, rows)


def _start_of(prompt: str) -> str:
    text = " ".join(prompt.split())
    return text if len(text) <= 60 else f"{text[:57]}..."
