"""The program's commands as functions: quantize, run, bench and report. mscgym.searches has search and prune.

    import mscgym
    result = mscgym.quantize(module, loader)       # of torch, or a path and an array
    result.save("small.onnx")
    print(result)

The functions write what the program reads, start the program, and read what it writes. They need numpy.
torch, onnx and tqdm are imported only if a model, a sample or a progress bar needs them.
"""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from mscgym import process, results
from mscgym.folders import Held, Room, made
from mscgym.models import Source
from mscgym.options import AnyNumber, AnyPath, ModelOptions, arguments, check_names, keywords
from mscgym.record import Record
from mscgym.refining import Plan, Wish, arrays_of, refined_plan
from mscgym.results import Bench, Quantized, Report, Searched
from mscgym.safetensors import read_safetensors
from mscgym.samples import Data, collect


def quantize(model: Any, data: Data, *, output: AnyPath | None = None, labels: Any = None, samples: int | None = None,
             target: str | None = None, effort: str | None = None, sites: str | None = None, float: int | None = None,
             loss_tensors: str | Sequence[str] | None = None, outputs: str | Sequence[str] | None = None,
             exclude: str | Sequence[str] | None = None, batch: int | None = None, atol: AnyNumber | None = None,
             accuracy_drop: AnyNumber | None = None, loss: str | None = None, sequence: int | None = None,
             imatrix: AnyPath | None = None, refine: str | Mapping[str, Any] | None = None,
             workspace: AnyPath | None = None, progress: bool | None = None,
             **options: Unpack[ModelOptions]) -> Quantized:
    """Makes the best 8-bit model that needs no search: `mscgym quantize`.

        >>> result = quantize("digits.onnx", "calibration.npz", effort="fast")
        >>> result.table["uncompressed"]["file_bytes"], result.plan["weights"]
        (62750, '8 minmax bias')
        >>> _ = result.save("small.onnx")

    Args:
        model: A path (ONNX, MSCGraph text or JSON), an onnx.ModelProto, a torch.nn.Module, a torch.export.ExportedProgram,
            or a result. A module is exported by torch's dynamo exporter, in evaluation mode.
        data: A few hundred samples for calibration: an array [samples, ...]; a dict of such arrays by the names of
            the model's inputs; a path; a torch DataLoader or Dataset; a list or an iterator of batches; or a function
            that returns one of these. A batch is an array, a tuple of arrays or a dict, and may end with labels.
        output: ONNX file to write, or a .tflite file for LiteRT. Default: a temporary ONNX file, which exists as long
            as the result.
        labels: Classes [samples], to measure the accuracy. Default: those of the batches; False: none; "next": the next
            token ids, to measure the perplexity.
        samples: Use at most so many samples, the first ones. Default: all in memory, 512 of loaders and iterators.
        target: Runtime that will run the model; default "onnxruntime".
        effort: "fast", "default" or "best".
        sites: "all" or "inputs": which tensors are quantised.
        float: Most tensors that may stay float; 0: none. Default: a tenth.
        loss_tensors: Names of the tensors that the loss compares.
        outputs: The same, but what they do not depend on stays float.
        exclude: Patterns of tensors that stay float.
        batch: Number of samples that run together. Default: from the model's shapes.
        atol: Largest difference between a backend and the reference kernels; default 0.001.
        accuracy_drop: Write only a plan whose accuracy is at most so much below the float model's, such as 0.01.
        loss: "mse", "kl" or "cosine": how outputs are compared. Default: "kl" for logits of tokens, else "mse".
        sequence: Cut token ids into samples of this length (docs/language-models.md).
        imatrix: Importance file of llama.cpp, in place of second moments of the samples (docs/gguf.md).
        refine: "torch": train the plan's integers and scales with torch, without labels (docs/training.md); or a dict
            with the options of this training.
        workspace: Folder for the exported model, the strategy and the samples, which are kept there. Default: a
            temporary one.
        progress: True or False: show a bar of tqdm, or none. Default: in notebooks and terminals, if tqdm is there.
        **options: device, isa, threads, memory, bind: see mscgym.options.ModelOptions.

    Raises:
        Error: The program refused the model, the samples or an option, or no plan keeps `accuracy_drop`.
        TypeError: An option or a form of data is unknown.
        Stopped: Ctrl-C stopped the program; nothing was written. If it stopped `refine`, `result` has the plan before.
    """
    check_names("quantize", options, keywords(quantize, ModelOptions))
    wish = Wish(refine) if refine is not None else None
    if wish and (loss_tensors or outputs):
        raise TypeError("quantize(): refine compares the model's outputs, so it does not take loss_tensors or outputs")
    source = Source(model)
    is_next = isinstance(labels, str) and labels == "next"
    collected = collect(data, source.signature() if source.is_module else source.signature, samples,
                        False if is_next else labels)
    with Room(collected.n_bytes()) as room:
        folder = made(workspace) if workspace else room
        path = source.save(folder, collected)
        held = None if workspace else Held()
        kept = held.path if held else folder
        written = os.fspath(output) if output else os.path.join(kept, "quantized.onnx")
        strategy = os.path.join(kept, "quantized.json")
        words = arguments({"inputs": collected.save(folder), "output": written, "save_strategy": strategy,
                           "labels": "next" if is_next else collected.save_labels(folder), "target": target,
                           "effort": effort, "sites": sites, "float": float, "loss_tensors": loss_tensors,
                           "outputs": outputs, "exclude": exclude, "batch": batch, "atol": atol,
                           "accuracy_drop": accuracy_drop, "loss": loss, "sequence": sequence,
                           "imatrix": imatrix, **options})
        answer = process.call(["quantize", path, *words], progress=progress)
        result = results.quantized(answer.value, answer.lines, held, strategy)
        if wish:
            refined_plan(wish, Plan(result, path, strategy, arrays_of(collected), answer.value["held_back"],
                                    written, strategy, labels=collected.classes(), options=options, progress=progress))
    return result


def run(model: Any, data: Data, *, strategy: AnyPath | None = None, tensors: str | Sequence[str] | None = None,
        samples: int | None = None, state: Mapping[str, str] | None = None, progress: bool | None = None,
        **options: Unpack[ModelOptions]) -> dict[str, Any]:
    """Runs a network on all samples, and returns its outputs: `mscgym run`.

        >>> outputs = run("digits.onnx", "calibration.npz", samples=8)
        >>> {name: array.shape for name, array in outputs.items()}
        {'scores': (8, 10)}

    Args:
        model: As in `quantize`; also the record of a search, for its winner.
        data: As in `quantize`; labels of batches are dropped.
        strategy: Compress the model by this strategy file; the outputs equal those of the search bit for bit.
        tensors: Names or patterns of tensors to return in place of the outputs; "*": all.
        samples: As in `quantize`.
        state: Inputs that get an output of the previous sample: {"h": "hn"}.
        progress: As in `quantize`.
        **options: As in `quantize`.

    Returns:
        Arrays [samples, ...] by the names of the tensors.

    Raises:
        Error: The program refused the model, the samples or an option.
    """
    check_names("run", options, keywords(run, ModelOptions))
    source = Source(model.path if isinstance(model, Record) else model)
    collected = collect(data, source.signature() if source.is_module else source.signature, samples, False)
    with Room(2 * collected.n_bytes()) as room:
        path = source.save(room, collected)
        output = os.path.join(room, "outputs.safetensors")
        words = arguments({"inputs": collected.save(room), "output": output, "strategy": strategy, "tensor": tensors,
                           "state": [f"{i}={o}" for i, o in state.items()] if state else None, **options})
        process.call(["run", path, *words], progress=progress)
        return read_safetensors(output)


def bench(*models: Any, data: Data = None, runtime: str | None = None, batch: int | None = None,
          rounds: int | None = None, threads: int | None = None, bind: Mapping[str, int] | None = None,
          progress: bool | None = None) -> Bench:
    """Measures the latency of models side by side, in their runtime: `mscgym bench`.

        >>> measured = bench("digits.onnx", runtime="cpu", rounds=2)
        >>> sorted(measured.table["digits"])[-1]
        'us.upper'

    Args:
        *models: As in `quantize`. Ratios are relative to the first.
        data: Samples, as in `quantize`. Default: random numbers; modules of torch need samples.
        runtime: "onnxruntime" (default), another name that `mscgym bench --help` lists, or "cpu" for the kernels
            of mscgym.
        batch: Number of samples that run together; default 1.
        rounds: Number of rounds, each of which runs all models; default 20.
        threads: Threads of a run; default: one per processor.
        bind: Open lengths of random inputs.
        progress: As in `quantize`.

    Raises:
        Error: The runtime is not installed, or it refused a model.
    """
    sources = [Source(model) for model in models]
    with Room() as room:
        paths, names, collected = [], [], None
        for i, source in enumerate(sources):
            folder = made(os.path.join(room, str(i)))
            if data is not None and (collected is None or source.is_module):
                collected = collect(data, source.signature() if source.is_module else source.signature, batch, False)
            paths.append(source.save(folder, collected))
            stem = os.path.splitext(os.path.basename(paths[-1]))[0]
            name = stem if source.path else type(source.model).__name__
            names.append(name if name not in names else f"{name} {i + 1}")
        words = arguments({"input": collected.save_npz(room) if collected else None, "runtime": runtime,
                           "batch": batch, "rounds": rounds, "threads": threads, "bind": bind})
        answer = process.call(["bench", *paths, *words], progress=progress)
    return Bench(answer.value, names)


def report(*records: AnyPath | Record | Searched, output: AnyPath | None = None) -> Report:
    """Writes records as one HTML page, which a notebook shows: `mscgym report`.

    Args:
        *records: Records of searches: paths, objects, or results of `search`.
        output: Page to write. Default: the name of the first record, ending in .html.

    Raises:
        Error: A record cannot be read.
    """
    paths = []
    for record in records:
        record = record.record if isinstance(record, Searched) and record.record else record
        paths.append(record.path if isinstance(record, Record) else os.fspath(record))
    page = os.fspath(output) if output else os.path.splitext(paths[0])[0] + ".html"
    process.call(["report", *paths, f"--output={page}"], progress=False, as_json=False)
    return Report(page)
